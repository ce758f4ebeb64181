package plane

import (
	"context"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/componentfile"
	"github.com/slipwayhq/slipway/internal/componentflag"
	"github.com/slipwayhq/slipway/internal/freebind"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/handover"
	"github.com/slipwayhq/slipway/internal/plane/pki"
	"github.com/slipwayhq/slipway/internal/plane/scheduler"
)

// Nodes is what a management cluster needs to have nodes, on which Pods of other providers run.
type Nodes struct {
	// Endpoint is where nodes and Pods reach the API server: the address of the host in the network of the nodes, which
	// need not exist yet.
	Endpoint netip.AddrPort
	// PodCIDR is the range of all Pods, one node's for each /24 of it.
	PodCIDR netip.Prefix
}

// ManagementServiceIP is the address of the Service "kubernetes" of every management cluster.
func ManagementServiceIP() netip.Addr {
	return netip.MustParsePrefix(managementServiceCIDR).Addr().Next()
}

// ManagementServices is the range of Services of every management cluster.
func ManagementServices() netip.Prefix { return netip.MustParsePrefix(managementServiceCIDR) }

const (
	kubeletClient   = "apiserver-kubelet-client" // of the API server, at kubelets
	schedulerClient = "scheduler"
	podNodeMask     = 24
)

// hosts are the addresses by which nodes and Pods know the API server.
func (n *Nodes) hosts() []net.IP {
	if n == nil {
		return nil
	}
	return []net.IP{n.Endpoint.Addr().AsSlice(), ManagementServiceIP().AsSlice()}
}

// nodeCertificates keeps those that only a cluster with nodes needs.
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

// writeAdmission writes the configuration of admission plugins, and returns the flag that names the file: with which credentials webhooks
// are called, and with nodes what Pods may do.
func (m managementPKI) writeAdmission() (flag string, err error) {
	var security hostedv1.Security
	if m.nodes != nil {
		security = podSecurity()
	}
	content, err := componentfile.ManagementAdmission(security, m.webhookKubeconfig())
	if err != nil {
		return "", err
	}
	path := filepath.Join(m.folder.Path, "admission.json")
	_, err = datadir.WriteFile(path, content, 0o600)
	return "--admission-control-config-file=" + path, err
}

// podSecurity is what Pods may do where the labels of their namespace, which only administrators write, do not say more:
// root in a node is root on the host.
func podSecurity() hostedv1.Security {
	baseline := hostedv1.PodSecurityStandard{Level: "baseline", Version: "latest"}
	return hostedv1.Security{PodSecurity: &hostedv1.PodSecurity{Enforce: baseline, Warn: baseline, Audit: baseline}}
}

// serverFlags are those of kube-apiserver in a cluster with nodes, beside the ones that every management cluster has.
func (n *Nodes) serverFlags(folder pki.Folder) []string {
	return []string{
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction,DenyServiceExternalIPs",
		"--enable-bootstrap-token-auth=true",
		// Webhooks are reached at the addresses of their Pods: those of Services lead nowhere on the host.
		"--enable-aggregator-routing=true",
		"--kubelet-client-certificate=" + folder.Cert(kubeletClient),
		"--kubelet-client-key=" + folder.Key(kubeletClient),
		"--kubelet-preferred-address-types=InternalIP",
		"--advertise-address=" + n.Endpoint.Addr().String(),
	}
}

// withoutNodes are the flags that leave out what only nodes and Pods need.
var withoutNodes = [...]string{"runtime-config", "disable-admission-plugins"}

// server changes the flags of an API server without nodes into those of one with nodes.
func (n *Nodes) server(flags []string, folder pki.Folder) []string {
	if n == nil {
		return flags
	}
	kept := slices.DeleteFunc(slices.Clone(flags), func(f string) bool {
		name, _ := componentflag.Split(f)
		return slices.Contains(withoutNodes[:], name)
	})
	return override(kept, n.serverFlags(folder))
}

// controllers changes the flags of a controller manager without nodes into those of one with nodes.
func (n *Nodes) controllers(flags []string) []string {
	if n == nil {
		return flags
	}
	return override(flags, []string{
		// The controller of aggregated roles runs beside them (controllers.RunAggregation).
		"--controllers=" + workloadControllers + ",-clusterrole-aggregation-controller",
		"--allocate-node-cidrs=true",
		"--cluster-cidr=" + n.PodCIDR.String(),
		"--service-cluster-ip-range=" + managementServiceCIDR,
		"--node-cidr-mask-size=" + strconv.Itoa(podNodeMask),
	})
}

// listen opens the endpoint of the nodes beside the listener of the host.
func (n *Nodes) listen(ctx context.Context, own net.Listener) (net.Listener, error) {
	if n == nil {
		return own, nil
	}
	l, err := freebind.Listen(ctx, n.Endpoint.String())
	if err != nil {
		return nil, err
	}
	return handover.Join(own, l), nil
}

// scheduler configures kube-scheduler, which a cluster without nodes does not need.
func (n *Nodes) scheduler(kubeconfig string) (*scheduler.Scheduler, error) {
	if n == nil {
		return nil, nil
	}
	return scheduler.New([]string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig, "--profiling=false",
	})
}
