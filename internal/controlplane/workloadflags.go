package controlplane

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
)

// workloadControllers lists the controllers of a cluster with nodes: the default ones, and the two that
// kubeadm's bootstrap tokens need.
const workloadControllers = "*,bootstrap-signer-controller,token-cleaner-controller"

// nodeBitsIPv4 and nodeBitsIPv6 are the numbers of address bits of each node, if the Pod range is large enough.
const (
	nodeBitsIPv4 = 8 // 256 addresses
	nodeBitsIPv6 = 64
	minNodes     = 16 // a smaller Pod range is split into at least this many
)

// workloadAPIServerFlags returns the kube-apiserver flags of a workload cluster, for [RunWorkload]. The argument files
// contains flags that refer to files (workloadFiles). The flags in the spec of the HostedControlPlane take precedence.
func workloadAPIServerFlags(c processconfig.Config, folder pki.Folder, etcdEndpoint string, files []string) []string {
	host := c.Endpoint
	if a, err := c.Address(); err == nil {
		host = a.Addr().String()
	}
	if c.Security.KubeletServingCertificates == hostedv1.KubeletServingRequired {
		files = append(files, "--kubelet-certificate-authority="+folder.Cert(processconfig.CA))
	}
	plugins := "NodeRestriction"
	if !disablesPlugin(c.APIServer, denyExternalIPs) {
		plugins += "," + denyExternalIPs
	}
	if c.Security.Hardening == hostedv1.HardeningRestricted {
		plugins += ",EventRateLimit"
		files = append(files, "--tls-min-version=VersionTLS13", "--service-account-extend-token-expiration=false")
	}
	return overrideFlags(append([]string{
		"--etcd-servers=" + etcdEndpoint,
		"--advertise-address=" + host,
		"--tls-cert-file=" + folder.Cert("apiserver"),
		"--tls-private-key-file=" + folder.Key("apiserver"),
		"--client-ca-file=" + folder.Cert(processconfig.CA),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=" + plugins,
		"--enable-bootstrap-token-auth=true",
		// Webhooks and aggregated APIs are called at the addresses of their Pods, because Service addresses
		// are not routed on the host.
		"--enable-aggregator-routing=true",
		"--kubelet-client-certificate=" + folder.Cert("apiserver-kubelet-client"),
		"--kubelet-client-key=" + folder.Key("apiserver-kubelet-client"),
		"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
		"--proxy-client-cert-file=" + folder.Cert("front-proxy-client"),
		"--proxy-client-key-file=" + folder.Key("front-proxy-client"),
		"--requestheader-client-ca-file=" + folder.Cert(processconfig.ProxyCA),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--service-account-issuer=" + c.Issuer(),
		"--service-account-key-file=" + strings.TrimSuffix(folder.Key(processconfig.SigningSA), ".key") + ".pub",
		"--service-account-signing-key-file=" + folder.Key(processconfig.SigningSA),
		"--service-cluster-ip-range=" + strings.Join(c.ServiceCIDRs, ","),
		"--allow-privileged=true",
		"--profiling=false",
	}, files...), c.APIServer)
}

// workloadControllerFlags returns the kube-controller-manager flags of a workload cluster, for [RunWorkload].
func workloadControllerFlags(c processconfig.Config, folder pki.Folder, kubeconfig string) []string {
	return overrideFlags(append([]string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--cluster-name=" + c.Cluster,
		"--controllers=" + workloadControllers,
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + folder.Key(processconfig.SigningSA),
		"--root-ca-file=" + folder.Cert(processconfig.CA),
		"--cluster-signing-cert-file=" + folder.Cert(signingCert),
		"--cluster-signing-key-file=" + folder.Key(processconfig.CA),
		"--allocate-node-cidrs=true",
		"--cluster-cidr=" + strings.Join(c.PodCIDRs, ","),
		"--service-cluster-ip-range=" + strings.Join(c.ServiceCIDRs, ","),
		"--controller-start-interval=0s",
		// At its start, it creates a ServiceAccount and a token for each of about forty controllers with one
		// client. With the default of 20 requests a second, all of them would start five seconds later: no
		// bootstrap token would be signed and no Node would get a Pod range.
		"--kube-api-qps=100",
		"--kube-api-burst=200",
		"--profiling=false",
	}, nodeMasks(c.PodCIDRs)...), c.ControllerManager)
}

// workloadSchedulerFlags returns the kube-scheduler flags of a workload cluster, for [RunWorkload].
func workloadSchedulerFlags(c processconfig.Config, kubeconfig string) []string {
	return overrideFlags([]string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--profiling=false",
	}, c.Scheduler)
}

// overrideFlags replaces flags in own with the flags of the same name in extra. For workload clusters, extra contains
// the flags of the HostedControlPlane, which [processconfig.Config.Validate] has validated. Admission plugins are added
// to the default ones and do not replace them.
func overrideFlags(own, extra []string) []string {
	given := map[string]bool{}
	for _, f := range extra {
		name, _ := componentconfig.SplitFlag(f)
		given[name] = name != "enable-admission-plugins"
	}
	out := slices.DeleteFunc(slices.Clone(own), func(f string) bool {
		name, _ := componentconfig.SplitFlag(f)
		return given[name]
	})
	return append(out, extra...)
}

// denyExternalIPs is the admission plugin that denies Services with external IPs. kube-proxy redirects
// traffic for these addresses on every node, so that an editor of one namespace could intercept traffic to
// any address.
const denyExternalIPs = "DenyServiceExternalIPs"

// disablesPlugin reports whether arguments disable an admission plugin. kube-apiserver does not start if a
// plugin is both enabled and disabled.
func disablesPlugin(args []string, plugin string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		name, value := componentconfig.SplitFlag(arg)
		return name == "disable-admission-plugins" && slices.Contains(strings.Split(value, ","), plugin)
	})
}

// nodeMasks returns the flags that divide the Pod ranges among nodes.
func nodeMasks(podCIDRs []string) []string {
	dual := len(podCIDRs) > 1
	var flags []string
	for _, r := range podCIDRs {
		p, err := netip.ParsePrefix(r)
		if err != nil {
			continue // rejected by Config.Validate
		}
		name, family := "--node-cidr-mask-size", ""
		switch {
		case dual && p.Addr().Is4():
			family = "-ipv4"
		case dual:
			family = "-ipv6"
		}
		flags = append(flags, fmt.Sprintf("%s%s=%d", name, family, nodeMask(p)))
	}
	return flags
}

// nodeMask returns the prefix length of a node within the Pod range p. Kubernetes divides a range into at
// most 2^16 parts.
func nodeMask(p netip.Prefix) int {
	bits, want := 32, 32-nodeBitsIPv4
	if p.Addr().Is6() {
		bits, want = 128, 128-nodeBitsIPv6
	}
	smallest := p.Bits() + len(strconv.FormatInt(minNodes-1, 2))
	return min(max(want, smallest), p.Bits()+16, bits)
}
