package infrastructure

const (
	// MoveHierarchyLabel is the label of the contract of clusterctl on objects that move with all objects that they
	// own. The SSHHost controller sets it on a host in use, because `clusterctl move` would leave the host behind
	// otherwise.
	MoveHierarchyLabel = "clusterctl.cluster.x-k8s.io/move-hierarchy"
	// MoveInUse is the value of this label that a provider sets on a host in use, and removes when the host is free.
	// Any other value is the operator's. The controller and `slipway move` compare it, so it must not change.
	MoveInUse = "in-use"
)
