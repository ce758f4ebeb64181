// Package class is about the ClusterClasses that a person can choose from.
//
// Does: finds the class of a new cluster, in its namespace or among those that ship ([Find]); reads values of its variables as
// people write them, by the schema that the class has for each ([Class.Values]); says which workers it has; lists classes with what
// uses them ([List]).
//
// Never: writes; changes a class that exists.
//
// Read first: [Find].
package class
