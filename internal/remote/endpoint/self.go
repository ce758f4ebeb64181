package endpoint

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Self names the Pod this process runs in, and how that Pod reaches the API of
// its own cluster. A workload cluster in which the Pod is found is that cluster,
// and is reached by the in-cluster address.
type Self struct {
	// Pod is the Pod's namespace and name; UID is its UID.
	Pod types.NamespacedName
	UID types.UID
	// Host is the in-cluster address, CAData what it is verified with (PEM).
	Host   string
	CAData []byte
}

// SelfFromEnvironment reads POD_NAMESPACE, POD_NAME and POD_UID and the Pod's
// in-cluster configuration; a nil inCluster is rest.InClusterConfig. It returns nil
// without an error when one of the variables is missing.
func SelfFromEnvironment(getenv func(string) string, inCluster func() (*rest.Config, error)) (*Self, error) {
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
	return &Self{Pod: pod, UID: uid, Host: cfg.Host, CAData: cfg.CAData}, nil
}

// RunsOn reports whether the Pod runs on the cluster that r reads. A cluster that
// cannot be read is another one.
func (s *Self) RunsOn(ctx context.Context, r client.Reader) bool {
	if s == nil {
		return false
	}
	var pod corev1.Pod
	if err := r.Get(ctx, s.Pod, &pod); err != nil {
		return false
	}
	return pod.UID == s.UID
}

// Shortcut is cfg with the in-cluster address, and its own credentials kept.
func (s *Self) Shortcut(cfg *rest.Config) *rest.Config {
	c := rest.CopyConfig(cfg)
	c.Host = s.Host
	c.TLSClientConfig.CAData = s.CAData
	c.TLSClientConfig.ServerName = ""
	c.Dial, c.Proxy = nil, nil // the rules for kubeconfigs are not about an address that this Pod was given
	return c
}
