package hosttransfer

// Incoming returns the records of resources that were transferred from other data directories, by Cluster.
func (b *Store) Incoming() ([]Record, error) { return b.read(incomingPrefix) }

// NewOwnership returns the ownership of an instance with these records.
func NewOwnership(instance string, given, taken []Record) Ownership {
	return newOwnership(instance, given, taken)
}
