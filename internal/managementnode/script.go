package managementnode

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/cloudinit"
)

// joinTimeout is the timeout of kubeadm join, long enough for a busy host.
const joinTimeout = 5 * time.Minute

// joinInput is the input of the join script, which [Supervisor.Run] runs in a new container.
type joinInput struct {
	Endpoint netip.AddrPort
	CA       []byte // PEM
	Token    string
	PodCIDR  netip.Prefix
	Machine  backend.Machine
	// Offline is true if the network has no access to the internet.
	Offline bool
}

// joinScript returns the bootstrap script of the container: it configures the Pod network and runs kubeadm join.
// kubeadm trusts only the CA in the script and does not discover one.
func joinScript(f joinInput) (backend.Script, error) {
	discovery, err := f.discovery()
	if err != nil {
		return backend.Script{}, err
	}
	join, err := f.join()
	if err != nil {
		return backend.Script{}, err
	}
	network, err := f.network()
	if err != nil {
		return backend.Script{}, err
	}
	file := func(path string, content []byte) map[string]any {
		return map[string]any{"path": path, "permissions": "0600", "content": string(content)}
	}
	data, err := yaml.Marshal(map[string]any{
		"write_files": []any{file(networkFile, network), file(discoveryFile, discovery), file(joinFile, join)},
		"runcmd":      []any{fmt.Sprintf("kubeadm join --config %s && rm -f %s %s && mkdir -p /run/cluster-api && echo success > %s", joinFile, joinFile, discoveryFile, cloudinit.Sentinel)},
	})
	if err != nil {
		return backend.Script{}, err
	}
	return cloudinit.RenderScript(cloudinit.BootstrapData{Value: append([]byte("#cloud-config\n"), data...)}, cloudinit.NodeSettings{
		Name: f.Machine.Name, Hostname: Name, ProviderID: backend.ProviderID(f.Machine.Name), Address: f.Machine.Address,
		Offline: f.Offline,
	}, joinTimeout)
}

const (
	networkFile   = "/etc/cni/net.d/10-slipway.conflist"
	discoveryFile = "/run/kubeadm/discovery.conf"
	joinFile      = "/run/kubeadm/join.yaml"
)

// discovery returns the kubeconfig with which kubeadm join finds the API server.
func (f joinInput) discovery() ([]byte, error) {
	return yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "default",
		"clusters": []any{map[string]any{"name": "default", "cluster": map[string]any{
			"server": "https://" + f.Endpoint.String(), "certificate-authority-data": f.CA,
		}}},
		"users":    []any{map[string]any{"name": "default", "user": map[string]any{"token": f.Token}}},
		"contexts": []any{map[string]any{"name": "default", "context": map[string]any{"cluster": "default", "user": "default"}}},
	})
}

// join returns the configuration of kubeadm join.
func (f joinInput) join() ([]byte, error) {
	return yaml.Marshal(map[string]any{
		"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "JoinConfiguration",
		"discovery": map[string]any{"file": map[string]any{"kubeConfigPath": discoveryFile}, "tlsBootstrapToken": f.Token},
		"nodeRegistration": map[string]any{
			"name": Name, "criSocket": "unix:///run/containerd/containerd.sock", "imagePullPolicy": "IfNotPresent", "taints": []any{},
		},
	})
}

// network returns the CNI configuration. The cluster has a single node, so the node's range is the range of all Pods
// and no per-node range has to be assigned. Pods are routed and not bridged, as in workload clusters.
func (f joinInput) network() ([]byte, error) {
	return json.MarshalIndent(map[string]any{
		"cniVersion": "1.0.0", "name": "slipway",
		"plugins": []any{
			map[string]any{"type": "ptp", "ipam": map[string]any{
				"type": "host-local", "ranges": []any{[]any{map[string]any{"subnet": f.PodCIDR.String()}}},
				"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
			}},
			map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
		},
	}, "", "  ")
}
