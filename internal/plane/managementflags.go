package plane

import (
	"strconv"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/plane/pki"
)

// servedGroups are the built-in API groups of the management cluster. It has no
// nodes, so what only nodes, pods and their networks need is left out, which
// saves memory and start-up time. apps is served so that manifests of providers
// can be applied and read back. discovery.k8s.io is needed by the API server's
// own resolver of webhook services, networking.k8s.io by its Services. policy
// is in the components of providers, whose PodDisruptionBudgets wait there for
// Pods that a node would run.
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

// droppedAdmission are admission plugins about pods, nodes and storage, and
// those that watch API groups which are not served.
var droppedAdmission = [...]string{
	"ServiceAccount", "DefaultStorageClass", "PersistentVolumeClaimResize",
	"DefaultTolerationSeconds", "StorageObjectInUseProtection", "Priority",
	"TaintNodesByCondition", "RuntimeClass", "DefaultIngressClass", "PodSecurity",
	"PodTopologyLabels", "ClusterTrustBundleAttest", "PodGroupProtection", "PodGroupWorkloadExists",
	"NodeDeclaredFeatureValidator", "JobValidation", "PodResizeValidator",
}

// managementControllers are the loops that ownership, namespaces, quotas, service
// accounts and certificate requests need. The one of aggregated roles runs
// beside them (controllers.RunAggregation).
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

// managementServiceCIDR is only bookkeeping: nothing routes Services here. It
// lies in the range that RFC 5737 keeps for documentation.
const managementServiceCIDR = "192.0.2.0/24"

// countPeriod is how often the objects of each kind are counted. etcd counts in its index and reads no object for it.
const countPeriod = 30 * time.Second

// The most requests that run at the same time, of all users together, and the fewest that a management cluster can work with.
const (
	mostInFlight  = 600 // the default of kube-apiserver
	leastInFlight = 64
	// requestMemory is what a request may take: an object of 1.5 MB that is decoded, defaulted, compared, encoded and read back.
	requestMemory = 32 << 20
)

// inFlight returns how many requests may run at the same time with this much memory in bytes.
func inFlight(memory int64) int {
	return int(min(max(memory/requestMemory, leastInFlight), mostInFlight))
}

// inFlightFlags divide them as kube-apiserver does by default. With priority and fairness only the sum counts.
func inFlightFlags(memory int64) []string {
	all := inFlight(memory)
	mutating := all / 3
	return []string{"--max-requests-inflight=" + strconv.Itoa(all-mutating), "--max-mutating-requests-inflight=" + strconv.Itoa(mutating)}
}

func managementFlags(folder pki.Folder, etcdEndpoint, authConfig string, profiling bool) []string {
	runtimeConfig := "api/all=false"
	for _, g := range servedGroups {
		runtimeConfig += "," + g + "=true"
	}
	return []string{
		"--etcd-servers=" + etcdEndpoint,
		// Priority and fairness knows from these counts what a LIST costs; without them each costs as much as a GET.
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
		"--watch-cache=false", // but of Secrets and ConfigMaps (internal/plane/apiserver)
		"--allow-privileged=true",
	}
}

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
		// How often a controller may ask, a second; the garbage collector twice as often, as it asks twice for each object, and a
		// thousand Clusters leave five thousand.
		"--kube-api-qps=200",
		"--kube-api-burst=200",
		// A kind that is new is known to the controller of quotas after half a minute, and counted when it looks next.
		"--resource-quota-sync-period=30s",
		"--profiling=false",
	}
}
