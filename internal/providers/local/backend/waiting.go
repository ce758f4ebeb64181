package backend

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// WaitingForBootstrapData says what a machine of the Cluster waits for that has no bootstrap data; nil: the Cluster is unknown.
func WaitingForBootstrapData(c *clusterv1.Cluster, b clusterv1.Bootstrap) string {
	switch {
	case c == nil:
		return "Waiting for the Cluster to exist: bootstrap data needs its control plane"
	case c.Status.Initialization.ControlPlaneInitialized == nil || !*c.Status.Initialization.ControlPlaneInitialized:
		return "Waiting for the control plane of Cluster " + c.Name + " to be initialized: bootstrap data needs it"
	case b.ConfigRef.IsDefined():
		return "Waiting for " + b.ConfigRef.Kind + " " + b.ConfigRef.Name + " to create the bootstrap data Secret"
	}
	return "Waiting for spec.bootstrap.dataSecretName to be set"
}
