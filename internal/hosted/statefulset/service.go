package statefulset

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// TypeFlag and HostFlag are the names of the flags for [Service]. Package providerset lists them (Flags).
const (
	TypeFlag = "control-plane-service-type"
	HostFlag = "control-plane-service-host"
)

// Service configures external access to control planes, from flags of `slipway manager`. This file computes the Service
// of a control plane, which is created before all other objects, because the certificates contain its endpoint.
type Service struct {
	// Type is LoadBalancer, NodePort or ClusterIP.
	Type corev1.ServiceType
	// Host is the address for node ports. It defaults to the address of the manager's Node.
	Host netip.Addr
}

// Check returns a fault if the flags are invalid. `slipway manager` calls it after it has parsed the flags.
func (s Service) Check() error {
	switch {
	case s.Type != corev1.ServiceTypeLoadBalancer && s.Type != corev1.ServiceTypeNodePort && s.Type != corev1.ServiceTypeClusterIP:
		return fault.New(fault.Invalid, "InvalidFlag", "--%s=%s: choose LoadBalancer, NodePort or ClusterIP", TypeFlag, s.Type)
	case s.Host.IsValid() && s.Type != corev1.ServiceTypeNodePort:
		return fault.New(fault.Invalid, "InvalidFlag", "--%s has an effect with --%s=NodePort only: leave it out", HostFlag, TypeFlag)
	}
	return nil
}

// newService returns the Service of a control plane. A non-zero port requests this node port.
func newService(o desiredPlane, t corev1.ServiceType, host string, port int32) *corev1.Service {
	out := &corev1.Service{
		TypeMeta: typeMeta(corev1.SchemeGroupVersion, "Service"), ObjectMeta: o.meta(),
		Spec: corev1.ServiceSpec{
			Type: t, Selector: labels(o.name),
			Ports: []corev1.ServicePort{{Name: portName, Protocol: corev1.ProtocolTCP, Port: servicePort, TargetPort: intstr.FromString(portName)}},
		},
	}
	if t == corev1.ServiceTypeNodePort {
		out.Annotations[hostAnnotation], out.Spec.Ports[0].NodePort = host, port
	}
	return out
}

// endpointOf returns the endpoint of a Service, or the reason why it is not known.
func endpointOf(s *corev1.Service) (at clusterv1.APIEndpoint, problem string) {
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		if len(s.Spec.Ports) == 1 && s.Spec.Ports[0].NodePort != 0 {
			return clusterv1.APIEndpoint{Host: s.Annotations[hostAnnotation], Port: s.Spec.Ports[0].NodePort}, ""
		}
	case corev1.ServiceTypeClusterIP:
		return clusterv1.APIEndpoint{Host: s.Spec.ClusterIP, Port: servicePort}, ""
	case corev1.ServiceTypeLoadBalancer:
		var names []string
		for _, i := range s.Status.LoadBalancer.Ingress {
			if _, err := netip.ParseAddr(i.IP); err == nil {
				return clusterv1.APIEndpoint{Host: i.IP, Port: servicePort}, ""
			}
			names = append(names, i.Hostname)
		}
		if len(names) > 0 {
			return at, fmt.Sprintf("The load balancer of Service %s/%s has the host name %s and no address, which a control plane needs; the operator chooses another --%s",
				s.Namespace, s.Name, strings.Join(names, ", "), TypeFlag)
		}
	}
	return at, fmt.Sprintf("Waiting for a load balancer to get an address for Service %s/%s; if the management cluster has no load balancers, start the manager with --%s=NodePort",
		s.Namespace, s.Name, TypeFlag)
}

// Reserve implements backend.Endpoints. It creates the Service.
func (c *controlPlanes) Reserve(ctx context.Context, name string, wanted clusterv1.APIEndpoint) (clusterv1.APIEndpoint, error) {
	have := &corev1.Service{}
	found, err := c.read(ctx, name, have)
	if err != nil {
		return clusterv1.APIEndpoint{}, err
	}
	if !found || have.Spec.Type != c.settings.Service.Type && !wanted.IsValid() {
		host := c.settings.Service.Host.String()
		if !c.settings.Service.Host.IsValid() && c.settings.Service.Type == corev1.ServiceTypeNodePort {
			own, err := c.readOwnSettings(ctx)
			if err != nil {
				return clusterv1.APIEndpoint{}, err
			}
			host = own.host
		}
		port := int32(0)
		if wanted.IsValid() { // the Service was probably deleted; kubeconfigs of nodes contain its port
			port = wanted.Port
		}
		want := newService(desiredPlane{name: name, namespace: c.settings.Namespace}, c.settings.Service.Type, host, port)
		if err := c.apply(ctx, have, want); err != nil {
			return clusterv1.APIEndpoint{}, err
		}
		have = &corev1.Service{}
		if found, err = c.read(ctx, name, have); err != nil || !found {
			return clusterv1.APIEndpoint{}, err
		}
	}
	at, _ := endpointOf(have)
	return at, nil
}
