package flannel

import (
	"bytes"
	_ "embed"
	"fmt"
	"net/netip"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Version is flannel's, and the tag of its image.
const Version = "v0.28.4"

// DefaultImageRepository is where the preloaded image claims to come from.
const DefaultImageRepository = "slipway.dev"

// defaultInterface is what Docker calls a container's first network.
const defaultInterface = "eth0"

// Params are what differs between clusters.
type Params struct {
	// PodCIDR is the IPv4 range of all Pods of the cluster, the same that kube-controller-manager takes node ranges
	// from. Required.
	PodCIDR string
	// ImageRepository is the image's name without "/flannel" and the tag. Default: DefaultImageRepository.
	ImageRepository string
	// Interface is the network interface by which nodes reach each other. Default: eth0.
	Interface string
	// APIServerHost and APIServerPort are where the API server is reached without a Service. Without them the
	// Service is used, which needs kube-proxy first. An IPv4 address or a name, and a number from 1 to 65535.
	APIServerHost string
	APIServerPort int
}

//go:embed manifests.yaml
var manifests string

// Objects returns the add-on's objects in the order in which to apply them. Params that make no cluster are a fault
// of kind Invalid.
func Objects(p Params) ([]unstructured.Unstructured, error) {
	p, err := p.complete()
	if err != nil {
		return nil, err
	}
	t, err := template.New("flannel").Option("missingkey=error").Parse(manifests)
	if err != nil {
		return nil, fmt.Errorf("reading flannel's manifests: %w", err)
	}
	var text bytes.Buffer
	if err := t.Execute(&text, struct {
		Params
		Version string
	}{p, Version}); err != nil {
		return nil, fmt.Errorf("filling in flannel's manifests: %w", err)
	}
	var out []unstructured.Unstructured
	for _, doc := range bytes.Split(text.Bytes(), []byte("\n---\n")) {
		var object map[string]any
		if err := yaml.Unmarshal(doc, &object); err != nil {
			return nil, fmt.Errorf("reading flannel's manifests: %w", err)
		}
		out = append(out, unstructured.Unstructured{Object: object})
	}
	return out, nil
}

func (p Params) complete() (Params, error) {
	prefix, err := netip.ParsePrefix(p.PodCIDR)
	if err != nil || !prefix.Addr().Is4() || prefix != prefix.Masked() {
		return p, fault.New(fault.Invalid, "InvalidPodCIDR", "%q is not an IPv4 range for Pods; write it like 10.244.0.0/16", p.PodCIDR)
	}
	if p.APIServerHost != "" && (p.APIServerPort < 1 || p.APIServerPort > 65535) {
		return p, fault.New(fault.Invalid, "InvalidPort", "%d is not a port of an API server", p.APIServerPort)
	}
	if p.ImageRepository == "" {
		p.ImageRepository = DefaultImageRepository
	}
	if p.Interface == "" {
		p.Interface = defaultInterface
	}
	return p, nil
}
