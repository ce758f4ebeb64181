package hosttransfer

// Incoming returns the records of resources that were transferred from other data directories, by Cluster.
func (b *Store) Incoming() ([]Record, error) { return b.read(incomingPrefix) }
