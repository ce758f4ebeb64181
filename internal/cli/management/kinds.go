package management

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Kinds finds kinds by the names that kubectl accepts, for arguments of "explain" and "describe cluster".
type Kinds struct {
	mapper meta.RESTMapper
	short  meta.RESTMapper
}

// NewKinds discovers the kinds of the management cluster. It sends requests, so "describe cluster --watch" calls it
// only once.
func NewKinds(cfg *rest.Config) (Kinds, error) {
	api, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return Kinds{}, err
	}
	groups, err := restmapper.GetAPIGroupResources(api)
	if err != nil {
		return Kinds{}, err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	return Kinds{mapper: mapper, short: restmapper.NewShortcutExpander(mapper, api, nil)}, nil
}

// Mapper returns the discovered kinds, which are also found without their group. Commands pass them to package
// rootcause.
func (k Kinds) Mapper() meta.RESTMapper { return k.mapper }

// Find finds a kind by its singular, plural or short name, with its group if that is needed. "explain" and "describe
// cluster" call it for the kinds that a user names.
func (k Kinds) Find(kind string) (*meta.RESTMapping, error) {
	name := schema.ParseGroupResource(strings.ToLower(kind))
	gvk, err := k.short.KindFor(name.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return nil, fault.New(fault.Invalid, "UnknownKind", "the management cluster has no kind %q; see \"slipway kubectl api-resources\"", kind).From(err)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "UnknownKind", "%q is not one kind: %v; add its group, such as machine.cluster.x-k8s.io", kind, err).From(err)
	}
	return k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}
