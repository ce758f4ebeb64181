package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SelfAddresses identifies the Pod in which this process runs, and how that Pod reaches the API server of its own
// cluster. The manager determines it when it starts. If the Pod is found in a workload cluster to which [Clusters]
// connects, the process runs in that cluster and uses the in-cluster address for it.
type SelfAddresses struct {
	// Pod is the Pod's namespace and name; UID is its UID.
	Pod types.NamespacedName
	UID types.UID
	// Host is the in-cluster address; CAData is the CA bundle that verifies it (PEM).
	Host   string
	CAData []byte
}

// SelfFromEnvironment reads POD_NAMESPACE, POD_NAME and POD_UID and the Pod's in-cluster configuration; a nil inCluster
// is rest.InClusterConfig. It returns nil without an error if one of the variables is missing. The manager calls it at
// its start.
func SelfFromEnvironment(getenv func(string) string, inCluster func() (*rest.Config, error)) (*SelfAddresses, error) {
	pod := types.NamespacedName{Namespace: getenv("POD_NAMESPACE"), Name: getenv("POD_NAME")}
	uid := types.UID(getenv("POD_UID"))
	if pod.Namespace == "" || pod.Name == "" || uid == "" {
		return nil, nil
	}
	if inCluster == nil {
		inCluster = rest.InClusterConfig
	}
	cfg, err := inCluster()
	if err != nil {
		return nil, fmt.Errorf("read the in-cluster configuration: %w", err)
	}
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return nil, fmt.Errorf("read the in-cluster certificate authority: %w", err)
	}
	return &SelfAddresses{Pod: pod, UID: uid, Host: cfg.Host, CAData: cfg.CAData}, nil
}

// RunsOn reports whether the Pod runs in the cluster that r reads. It returns false if the cluster cannot be read.
// [Clusters] calls it for each new connection.
func (s *SelfAddresses) RunsOn(ctx context.Context, r client.Reader) bool {
	if s == nil {
		return false
	}
	var pod corev1.Pod
	if err := r.Get(ctx, s.Pod, &pod); err != nil {
		return false
	}
	return pod.UID == s.UID
}

// Shortcut returns cfg with the in-cluster address and CA; the credentials remain. [Clusters] connects with it if
// [SelfAddresses.RunsOn] is true.
func (s *SelfAddresses) Shortcut(cfg *rest.Config) *rest.Config {
	c := rest.CopyConfig(cfg)
	c.Host = s.Host
	c.TLSClientConfig.CAData = s.CAData
	c.TLSClientConfig.ServerName = ""
	c.Dial, c.Proxy = nil, nil // the connection policy does not apply to the Pod's own in-cluster address
	return c
}
