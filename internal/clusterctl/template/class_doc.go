// Package class finds the ClusterClass of a new Cluster, in its namespace or among the built-in classes ([FindClass]),
// parses values of its variables by their schemas ([Class.Values]), selects its worker class ([Class.Workers]), and
// lists the available classes with the Clusters that use them ([ListClasses]). It only reads.
package template
