// Package workload describes the control plane of one workload cluster: what
// the process that runs it is configured, and where its files are.
//
// Does: the configuration as one JSON file, its checks and its hash; the names
// of the files in the control plane's folder; what the process says about
// itself (run.json); how all of it gets into a Pod's volume (Delivery).
//
// Owns: FOLDER/config.json and FOLDER/run.json.
//
// Never: runs anything, so that a package that only describes control planes
// does not link them (internal/plane runs one, internal/plane/process keeps it
// running).
//
// Read first: Config, Folder.
package workload
