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

// Params defines the objects that are applied to the workload cluster. The callers of [Apply] fill them in.
type Params struct {
	ClusterName string
	// Version of Kubernetes, for example v1.36.3.
	Version string
	// Host and Port of the API server for nodes.
	Host string
	Port int32
	// CA is the certificate of the cluster's CA, in PEM.
	CA []byte
	// ServiceCIDR and PodCIDR are comma-separated in dual-stack clusters.
	ServiceCIDR, PodCIDR string
	ServiceDomain        string
	// ImageRepository of the add-on images.
	ImageRepository string
	// CoreDNS and KubeProxy select the add-ons to apply.
	CoreDNS, KubeProxy bool
	// OwnKubeProxy makes each node run the kube-proxy in its node image, so that it always has the version of
	// the node.
	OwnKubeProxy bool
	// SignedServing makes kubelets that join request serving certificates from the cluster's CA. If false, it is
	// omitted, because a new field would otherwise change [Params.Hash] of every cluster.
	SignedServing bool `json:",omitempty"`
}

// revision is part of [Params.Hash]. Increase it when Apply produces different objects for the same params, so that
// they are applied to existing clusters.
const revision = 4

// Hash identifies the result of Apply. If it is unchanged, nothing needs to be applied. The status of a
// HostedControlPlane stores it in addonsHash.
func (p Params) Hash() string {
	data, err := json.Marshal(struct {
		Params
		Revision int
	}{p, revision})
	if err != nil { // strings, numbers and booleans can always be encoded
		panic(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// kubeadmRetryTimeout limits the retries of kubeadm. After that, the controller requeues, so that it can reconcile
// other objects in the meantime.
const kubeadmRetryTimeout = 2 * time.Second

// step is one object or group of objects to apply. [Apply] runs the steps in order.
type step struct {
	name string
	do   func() error
}

// Apply applies all objects. The HostedControlPlane controller calls it when the API server is ready and [Params.Hash]
// has changed, and the supervisor of the management node at each start. It is idempotent: each step creates or updates.
func Apply(ctx context.Context, access *rest.Config, p Params) error {
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return fmt.Errorf("connecting to the workload cluster: %w", err)
	}
	cfg, err := p.configuration()
	if err != nil {
		return err
	}
	steps := joinSteps(client, cfg, p)
	if p.KubeProxy {
		proxied := cfg.ClusterConfiguration
		if p.OwnKubeProxy {
			proxied.KubernetesVersion = nodeimage.KubeProxyTag // used as the image tag only
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

// joinSteps returns the steps for the objects that kubeadm join needs.
func joinSteps(client kubernetes.Interface, cfg *kubeadm.InitConfiguration, p Params) []step {
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

// clusterInfo publishes the address and the CA of the API server.
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

// configuration returns the equivalent of the configuration for `kubeadm init`. It does not change the
// conntrack limits of the host, because nodes can be containers, which cannot set them.
func (p Params) configuration() (*kubeadm.InitConfiguration, error) {
	documents := []map[string]any{
		{
			"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "InitConfiguration",
			"localAPIEndpoint": map[string]any{"advertiseAddress": p.Host, "bindPort": p.Port},
			"nodeRegistration": map[string]any{"name": "hosted", "criSocket": "unix:///run/containerd/containerd.sock"},
			"timeouts":         map[string]any{"kubernetesAPICall": kubeadmRetryTimeout.String()},
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
	cfg.KubernetesVersion = p.Version // kubeadm rejects other versions, and the objects are the same
	return cfg, nil
}
