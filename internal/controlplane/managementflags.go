package controlplane

import (
	"strconv"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
)

// servedGroups are the built-in API groups of the management cluster. Without nodes, groups that only nodes,
// Pods and Pod networks need are left out to save memory and start-up time. apps is served so that manifests
// of providers can be applied and read. discovery.k8s.io is needed by the API server to resolve webhook
// Services, and networking.k8s.io to implement Services. policy is needed for the PodDisruptionBudgets of
// providers.
var servedGroups = [...]string{
	"v1",
	"admissionregistration.k8s.io/v1",
	"apiextensions.k8s.io/v1",
	"apiregistration.k8s.io/v1",
	"apps/v1",
	"authentication.k8s.io/v1",
	"authorization.k8s.io/v1",
	"certificates.k8s.io/v1",
	"coordination.k8s.io/v1",
	"discovery.k8s.io/v1",
	"events.k8s.io/v1",
	"flowcontrol.apiserver.k8s.io/v1",
	"networking.k8s.io/v1",
	"policy/v1",
	"rbac.authorization.k8s.io/v1",
}

// droppedAdmission lists the disabled admission plugins of a management cluster without nodes: plugins for Pods, nodes
// and storage, and plugins that watch API groups which are not served. A new Kubernetes release can require changes.
var droppedAdmission = [...]string{
	"ServiceAccount", "DefaultStorageClass", "PersistentVolumeClaimResize",
	"DefaultTolerationSeconds", "StorageObjectInUseProtection", "Priority",
	"TaintNodesByCondition", "RuntimeClass", "DefaultIngressClass", "PodSecurity",
	"PodTopologyLabels", "ClusterTrustBundleAttest", "PodGroupProtection", "PodGroupWorkloadExists",
	"NodeDeclaredFeatureValidator", "JobValidation", "PodResizeValidator",
}

// managementControllers lists the controllers of kube-controller-manager that run in a management cluster without
// nodes, for ownership, namespaces, quotas, service accounts and certificate requests. The controller for aggregated
// roles runs separately (runAggregation).
var managementControllers = [...]string{
	"garbage-collector-controller",
	"namespace-controller",
	"resourcequota-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"root-ca-certificate-publisher-controller",
	"certificatesigningrequest-signing-controller",
	"certificatesigningrequest-approving-controller",
	"certificatesigningrequest-cleaner-controller",
	"validatingadmissionpolicy-status-controller",
}

// managementServiceCIDR is only used for bookkeeping, because Services are not routed. It is in a range that
// RFC 5737 reserves for documentation.
const managementServiceCIDR = "192.0.2.0/24"

// countPeriod is the interval between counts of the objects of each kind. etcd counts in its index without
// reading objects.
const countPeriod = 30 * time.Second

// Upper and lower limits of concurrent requests of all users together.
const (
	mostInFlight  = 600 // the default of kube-apiserver
	leastInFlight = 64
	// requestMemory is the memory that a request may take: an object of 1.5 MB that is decoded, defaulted,
	// compared, encoded and read again.
	requestMemory = 32 << 20
)

// inFlight returns the number of concurrent requests for this memory, in bytes.
func inFlight(memory int64) int {
	return int(min(max(memory/requestMemory, leastInFlight), mostInFlight))
}

// inFlightFlags divides the requests as kube-apiserver does by default. With priority and fairness, only the
// sum matters. [StartManagement] adds them.
func inFlightFlags(memory int64) []string {
	all := inFlight(memory)
	mutating := all / 3
	return []string{"--max-requests-inflight=" + strconv.Itoa(all-mutating), "--max-mutating-requests-inflight=" + strconv.Itoa(mutating)}
}

// managementFlags returns the kube-apiserver flags of a management cluster without nodes. [Nodes.server] adapts them to
// nodes. [StartManagement] parses them.
func managementFlags(folder pki.Folder, etcdEndpoint, authConfig string, profiling bool) []string {
	runtimeConfig := "api/all=false"
	for _, g := range servedGroups {
		runtimeConfig += "," + g + "=true"
	}
	return []string{
		"--etcd-servers=" + etcdEndpoint,
		// Priority and fairness estimates the cost of a LIST from these counts. Without them, a LIST costs as
		// much as a GET.
		"--etcd-count-metric-poll-period=" + countPeriod.String(),
		"--etcd-db-metric-poll-interval=0",
		"--tls-cert-file=" + folder.Cert("apiserver"),
		"--tls-private-key-file=" + folder.Key("apiserver"),
		"--client-ca-file=" + folder.Cert("ca"),
		"--authentication-config=" + authConfig,
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + strings.TrimSuffix(folder.Key("sa"), ".key") + ".pub",
		"--service-account-signing-key-file=" + folder.Key("sa"),
		"--service-cluster-ip-range=" + managementServiceCIDR,
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--runtime-config=" + runtimeConfig,
		"--disable-admission-plugins=" + strings.Join(droppedAdmission[:], ","),
		"--feature-gates=APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false,DRAExtendedResource=false", // its kinds are not served
		"--profiling=" + strconv.FormatBool(profiling),
		"--watch-cache=false", // except for Secrets and ConfigMaps (internal/controlplane/components)
		"--allow-privileged=true",
	}
}

// managementControllerFlags returns the kube-controller-manager flags of a management cluster without nodes.
// [Nodes.controllers] adapts them to nodes. [StartManagement] parses them.
func managementControllerFlags(folder pki.Folder, kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--controllers=" + strings.Join(managementControllers[:], ","),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + folder.Key("sa"),
		"--root-ca-file=" + folder.Cert("ca"),
		"--cluster-signing-cert-file=" + folder.Cert("ca"),
		"--cluster-signing-key-file=" + folder.Key("ca"),
		"--controller-start-interval=0s",
		// Requests of a controller per second. The garbage collector may send twice as many, because it sends
		// two for each object, and a thousand Clusters leave five thousand objects.
		"--kube-api-qps=200",
		"--kube-api-burst=200",
		// The quota controller discovers a new kind after half a minute, and counts its objects at the next
		// sync.
		"--resource-quota-sync-period=30s",
		"--profiling=false",
	}
}
