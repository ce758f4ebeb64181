package manager

import (
	"net/netip"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted/statefulset"
	"github.com/slipwayhq/slipway/internal/manager"
)

// podsFlag enables hosted control planes in Pods.
const podsFlag = "control-plane-pods"

// unsetValue is a flag value equivalent to an empty one. The variables of a release need it because they cannot have an
// empty default in Cluster API's clusterctl.
const unsetValue = "-"

// podFlags holds the flags of the manager command for hosted control planes in Pods. options.bind adds them, and
// options.complete applies them (manager.go).
type podFlags struct {
	on                                    bool
	serviceType, serviceHost, size, class string
}

func (p *podFlags) bind(f *pflag.FlagSet) {
	f.BoolVar(&p.on, podsFlag, false, "run each hosted control plane as a StatefulSet with a volume in the manager's namespace, with the image of the manager's Pod ($POD_NAME in $POD_NAMESPACE)")
	f.StringVar(&p.serviceType, statefulset.TypeFlag, string(corev1.ServiceTypeLoadBalancer), "type of the Service of a control plane in a Pod: LoadBalancer, NodePort or ClusterIP; the type of an existing endpoint does not change")
	f.StringVar(&p.serviceHost, statefulset.HostFlag, "", "with type NodePort: IP address of the node ports (default, and -: the address of the node of the manager's Pod)")
	f.StringVar(&p.size, statefulset.SizeFlag, "8Gi", "size of the volume of a new control plane in a Pod")
	f.StringVar(&p.class, statefulset.ClassFlag, "", "storage class of the volume (default, and -: the default class of the management cluster)")
}

// complete validates the flags and applies them to the manager's configuration.
func (p *podFlags) complete(e term.Env, cfg *manager.Config) error {
	if !p.on {
		return nil
	}
	s := statefulset.Settings{
		Namespace: e.Getenv("POD_NAMESPACE"), Pod: e.Getenv("POD_NAME"), Version: buildinfo.Kubernetes(),
		Service: statefulset.Service{Type: corev1.ServiceType(p.serviceType)},
	}
	if p.class != unsetValue {
		s.Volume.Class = p.class
	}
	if s.Namespace == "" || s.Pod == "" {
		return fault.New(fault.Invalid, "InvalidFlag", "--%s needs the environment variables POD_NAME and POD_NAMESPACE: set them from metadata.name and metadata.namespace of the Pod", podsFlag)
	}
	var err error
	if s.Volume.Size, err = resource.ParseQuantity(p.size); err != nil || s.Volume.Size.Sign() <= 0 {
		return fault.New(fault.Invalid, "InvalidFlag", "--%s=%s is not a size like 8Gi", statefulset.SizeFlag, p.size)
	}
	if p.serviceHost != "" && p.serviceHost != unsetValue {
		if s.Service.Host, err = netip.ParseAddr(p.serviceHost); err != nil {
			return fault.New(fault.Invalid, "InvalidFlag", "--%s=%s is not an IP address", statefulset.HostFlag, p.serviceHost)
		}
	}
	cfg.Host.Pods = s
	return s.Service.Check()
}
