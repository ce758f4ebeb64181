package addons

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/addons/dns"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/addons/proxy"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/bootstraptoken/clusterinfo"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/bootstraptoken/node"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/kubelet"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/uploadconfig"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/config"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/nodeimage"
)

// Params say what to put into the workload cluster.
type Params struct {
	ClusterName string
	// Version of Kubernetes, for example v1.36.3.
	Version string
	// Host and Port of the API server, as nodes reach it.
	Host string
	Port int32
	// CA is the certificate of the cluster's authority, in PEM.
	CA []byte
	// ServiceCIDR and PodCIDR, comma-separated where there is one of each family.
	ServiceCIDR, PodCIDR string
	ServiceDomain        string
	// ImageRepository that add-on images come from.
	ImageRepository string
	// Which add-ons to apply.
	CoreDNS, KubeProxy bool
	// OwnKubeProxy runs on each node the kube-proxy that its image has, of the node's version, whichever that is.
	OwnKubeProxy bool
	// SignedServing has kubelets that join request serving certificates of the cluster's authority.
	SignedServing bool `json:",omitempty"`
}

// revision of what Apply does: it rises when that is something else for the same params.
const revision = 4

// Hash stands for what Apply does with the params: unchanged, there is nothing to apply.
func (p Params) Hash() string {
	data, err := json.Marshal(struct {
		Params
		Revision int
	}{p, revision})
	if err != nil { // strings, numbers and booleans always encode
		panic(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// persist is how long kubeadm tries again where a call fails. After that the controller does, which serves others
// meanwhile.
const persist = 2 * time.Second

// step is one thing to apply.
type step struct {
	name string
	do   func() error
}

// Apply applies everything. It may be repeated: each step creates or updates.
func Apply(ctx context.Context, access *rest.Config, p Params) error {
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return fmt.Errorf("connecting to the workload cluster: %w", err)
	}
	cfg, err := p.configuration()
	if err != nil {
		return err
	}
	steps := joining(client, cfg, p)
	if p.KubeProxy {
		proxied := cfg.ClusterConfiguration
		if p.OwnKubeProxy {
			proxied.KubernetesVersion = nodeimage.KubeProxyTag // it is the tag of the image, and nothing else
		}
		steps = append(steps, step{"kube-proxy", func() error {
			return proxy.EnsureProxyAddon(&proxied, &cfg.LocalAPIEndpoint, client, io.Discard, false)
		}})
	}
	if p.CoreDNS {
		steps = append(steps, step{"CoreDNS", func() error {
			return dns.EnsureDNSAddon(&cfg.ClusterConfiguration, client, "", io.Discard, false)
		}})
	}
	for _, s := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.do(); err != nil {
			return fmt.Errorf("applying %s: %w", s.name, err)
		}
	}
	return nil
}

// joining is what kubeadm join looks for.
func joining(client kubernetes.Interface, cfg *kubeadm.InitConfiguration, p Params) []step {
	return []step{
		{"kubeadm-config", func() error { return uploadconfig.UploadConfiguration(cfg, client) }},
		{"kubelet-config", func() error { return kubelet.CreateConfigMap(&cfg.ClusterConfiguration, client) }},
		{"the right of bootstrap tokens to read nodes", func() error { return node.AllowBootstrapTokensToGetNodes(client) }},
		{"the right of bootstrap tokens to ask for certificates", func() error { return node.AllowBootstrapTokensToPostCSRs(client) }},
		{"approval of node certificates", func() error { return node.AutoApproveNodeBootstrapTokens(client) }},
		{"approval of renewed node certificates", func() error { return node.AutoApproveNodeCertificateRotation(client) }},
		{"the right of the API server to use kubelets", func() error { return node.AllowAPIServerToAccessKubeletAPI(client) }},
		{"cluster-info", func() error { return clusterInfo(client, p) }},
		{"the right to read cluster-info", func() error { return clusterinfo.CreateClusterInfoRBACRules(client) }},
	}
}

// clusterInfo publishes where the API server is and by which authority to know it.
func clusterInfo(client kubernetes.Interface, p Params) error {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "default",
		"clusters": []any{map[string]any{"name": "default", "cluster": map[string]any{
			"server": "https://" + p.address(), "certificate-authority-data": p.CA,
		}}},
		"contexts": []any{map[string]any{"name": "default", "context": map[string]any{"cluster": "default"}}},
	})
	if err != nil {
		return err
	}
	access, err := clientcmd.Load(text)
	if err != nil {
		return err
	}
	return clusterinfo.CreateBootstrapConfigMapIfNotExists(client, access)
}

func (p Params) address() string { return net.JoinHostPort(p.Host, fmt.Sprint(p.Port)) }

// configuration is what `kubeadm init` would have been told. Conntrack limits stay the host's: a node may be a
// container, which cannot set them.
func (p Params) configuration() (*kubeadm.InitConfiguration, error) {
	documents := []map[string]any{
		{
			"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration",
			"localAPIEndpoint": map[string]any{"advertiseAddress": p.Host, "bindPort": p.Port},
			"nodeRegistration": map[string]any{"name": "hosted", "criSocket": "unix:///run/containerd/containerd.sock"},
			"timeouts":         map[string]any{"kubernetesAPICall": persist.String()},
		},
		{
			"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration",
			"clusterName": p.ClusterName, "kubernetesVersion": nodeimage.DefaultVersion, "imageRepository": p.ImageRepository,
			"controlPlaneEndpoint": p.address(),
			"networking":           map[string]any{"serviceSubnet": p.ServiceCIDR, "podSubnet": p.PodCIDR, "dnsDomain": p.ServiceDomain},
		},
		{
			"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
			"mode": "iptables", "clusterCIDR": p.PodCIDR, "conntrack": map[string]any{"maxPerCore": 0, "min": 0},
		},
	}
	if p.SignedServing {
		documents = append(documents, map[string]any{
			"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "serverTLSBootstrap": true,
		})
	}
	var text strings.Builder
	for _, d := range documents {
		data, err := yaml.Marshal(d)
		if err != nil {
			return nil, err
		}
		text.WriteString("---\n" + string(data))
	}
	cfg, err := config.BytesToInitConfiguration([]byte(text.String()), true)
	if err != nil {
		return nil, fault.New(fault.Invalid, "KubeadmConfigurationInvalid", "kubeadm does not accept the configuration of the cluster: %s", err.Error())
	}
	cfg.KubernetesVersion = p.Version // kubeadm knows few versions besides its own, and what is made here is the same for all
	return cfg, nil
}
