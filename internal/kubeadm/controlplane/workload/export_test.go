package workload

// Tests outside of the package use these private names.
const APIServer = apiServerPod

// Open returns the number of clusters with open connections.
func (c *EtcdConnections) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}
