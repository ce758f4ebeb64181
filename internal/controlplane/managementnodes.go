package controlplane

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/components"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/listeners"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
)

// Nodes configures a management cluster with nodes, which run Pods of other providers. `slipway up --node` sets it. A
// nil Nodes is a management cluster without nodes; its methods then change nothing.
type Nodes struct {
	// Endpoint is the address of the API server for nodes and Pods: the address of the host in the network of
	// the nodes, which need not exist yet.
	Endpoint netip.AddrPort
	// PodCIDR is the range of all Pods. Each node gets a /24 of it.
	PodCIDR netip.Prefix
}

// managementServiceIP returns the address of the Service "kubernetes" of every management cluster.
func managementServiceIP() netip.Addr {
	return netip.MustParsePrefix(managementServiceCIDR).Addr().Next()
}

// ManagementServices returns the Service range of every management cluster. The controller of the management node
// configures kube-proxy and kubelet with it.
func ManagementServices() netip.Prefix { return netip.MustParsePrefix(managementServiceCIDR) }

const (
	kubeletClient   = "apiserver-kubelet-client" // of the API server, for kubelets
	schedulerClient = "scheduler"
	podNodeMask     = 24
)

// hosts returns the addresses of the API server for nodes and Pods. The serving certificate contains them.
func (n *Nodes) hosts() []net.IP {
	if n == nil {
		return nil
	}
	return []net.IP{n.Endpoint.Addr().AsSlice(), managementServiceIP().AsSlice()}
}

// nodeCertificates issues the certificates that only a cluster with nodes needs. Each run of ensure (certificates.go)
// calls it.
func (m managementPKI) nodeCertificates(ca pki.Pair) error {
	if m.nodes == nil {
		return nil
	}
	if _, _, err := m.folder.Leaf(kubeletClient, ca, pki.Leaf{User: "kube-apiserver-kubelet-client", Groups: []string{kubeadmAdmins}, Client: true}); err != nil {
		return err
	}
	return m.client(ca, schedulerClient, pki.Leaf{User: "system:kube-scheduler"}, m.schedulerKubeconfig())
}

func (m managementPKI) schedulerKubeconfig() string { return m.dir.Path("pki", "scheduler.kubeconfig") }

// writeAdmission writes the configuration of admission plugins, and returns the flag that refers to it. It
// contains the credentials for webhooks and, with nodes, the Pod Security Standards. [StartManagement] calls it.
func (m managementPKI) writeAdmission() (flag string, err error) {
	var security hostedv1.Security
	if m.nodes != nil {
		security = podSecurity()
	}
	content, err := componentconfig.ManagementAdmission(security, m.webhookKubeconfig())
	if err != nil {
		return "", err
	}
	path := filepath.Join(m.folder.Path, "admission.json")
	_, err = datadir.WriteFile(path, content, 0o600)
	return "--admission-control-config-file=" + path, err
}

// podSecurity returns the Pod Security Standards for namespaces whose labels set no others. Only
// administrators can write these labels, because root in a node is root on the host.
func podSecurity() hostedv1.Security {
	baseline := hostedv1.PodSecurityStandard{Level: "baseline", Version: "latest"}
	return hostedv1.Security{PodSecurity: &hostedv1.PodSecurity{Enforce: baseline, Warn: baseline, Audit: baseline}}
}

// serverFlags returns the additional kube-apiserver flags of a cluster with nodes.
func (n *Nodes) serverFlags(folder pki.Folder) []string {
	return []string{
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction,DenyServiceExternalIPs",
		"--enable-bootstrap-token-auth=true",
		// Webhooks are called at the addresses of their Pods, because Service addresses are not routed on the
		// host.
		"--enable-aggregator-routing=true",
		"--kubelet-client-certificate=" + folder.Cert(kubeletClient),
		"--kubelet-client-key=" + folder.Key(kubeletClient),
		"--kubelet-preferred-address-types=InternalIP",
		"--advertise-address=" + n.Endpoint.Addr().String(),
	}
}

// withoutNodes lists the kube-apiserver flags that disable features for nodes and Pods.
var withoutNodes = [...]string{"runtime-config", "disable-admission-plugins"}

// server converts the API server flags of a cluster without nodes to those of a cluster with nodes. The method
// configure (management.go) calls it.
func (n *Nodes) server(flags []string, folder pki.Folder) []string {
	if n == nil {
		return flags
	}
	kept := slices.DeleteFunc(slices.Clone(flags), func(f string) bool {
		name, _ := componentconfig.SplitFlag(f)
		return slices.Contains(withoutNodes[:], name)
	})
	return overrideFlags(kept, n.serverFlags(folder))
}

// controllers converts the controller manager flags of a cluster without nodes to those of a cluster with
// nodes. The method configure (management.go) calls it.
func (n *Nodes) controllers(flags []string) []string {
	if n == nil {
		return flags
	}
	return overrideFlags(flags, []string{
		// The controller for aggregated roles runs separately (runAggregation).
		"--controllers=" + workloadControllers + ",-clusterrole-aggregation-controller",
		"--allocate-node-cidrs=true",
		"--cluster-cidr=" + n.PodCIDR.String(),
		"--service-cluster-ip-range=" + managementServiceCIDR,
		"--node-cidr-mask-size=" + strconv.Itoa(podNodeMask),
	})
}

// listen opens the endpoint of the nodes in addition to the listener of the host. newManagement calls it.
func (n *Nodes) listen(ctx context.Context, own net.Listener) (net.Listener, error) {
	if n == nil {
		return own, nil
	}
	l, err := listeners.Freebind(ctx, n.Endpoint.String())
	if err != nil {
		return nil, err
	}
	return listeners.Merge(own, l), nil
}

// scheduler configures kube-scheduler. It returns nil without nodes. The method configure (management.go) calls it.
func (n *Nodes) scheduler(kubeconfig string) (*components.Scheduler, error) {
	if n == nil {
		return nil, nil
	}
	return components.NewScheduler([]string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig, "--profiling=false",
	})
}
