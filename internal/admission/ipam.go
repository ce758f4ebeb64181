package admission

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
)

// validateIPAddress validates a new IPAddress for [Validate], and checks on update that it is not changed.
func validateIPAddress(r Request, address *ipamv1.IPAddress) Response {
	spec := field.NewPath("spec")
	if old, isUpdate := r.Old.(*ipamv1.IPAddress); isUpdate {
		if equality.Semantic.DeepEqual(old.Spec, address.Spec) {
			return Response{}
		}
		return Response{Errors: field.ErrorList{field.Forbidden(spec, "cannot be changed")}}
	}
	var errs field.ErrorList
	ip, err := netip.ParseAddr(address.Spec.Address)
	if err != nil {
		errs = append(errs, field.Invalid(spec.Child("address"), address.Spec.Address, "must be an IP address"))
	}
	switch prefix := address.Spec.Prefix; {
	case prefix == nil:
		errs = append(errs, field.Required(spec.Child("prefix"), "set the length of the network prefix"))
	case err == nil && (*prefix < 0 || int(*prefix) > ip.BitLen()):
		errs = append(errs, field.Invalid(spec.Child("prefix"), *prefix,
			fmt.Sprintf("must be from 0 to %d for this address", ip.BitLen())))
	}
	if gateway := address.Spec.Gateway; gateway != "" {
		if _, err := netip.ParseAddr(gateway); err != nil {
			errs = append(errs, field.Invalid(spec.Child("gateway"), gateway, "must be an IP address"))
		}
	}
	errs = append(errs, validatePool(address.Spec.PoolRef, spec.Child("poolRef"))...)
	if claim := r.Related.Claim; claim != nil && len(errs) == 0 && address.Spec.PoolRef != claim.Spec.PoolRef {
		pool := claim.Spec.PoolRef
		errs = append(errs, field.Invalid(spec.Child("poolRef"), address.Spec.PoolRef.Name,
			fmt.Sprintf("must be %s %s, the pool that IPAddressClaim %s requests", pool.Kind, pool.Name, claim.Name)))
	}
	return Response{Errors: errs}
}

// validateIPAddressClaim checks that a claim references a pool, and that the reference is immutable. [Validate] calls
// it.
func validateIPAddressClaim(r Request, claim *ipamv1.IPAddressClaim) Response {
	path := field.NewPath("spec", "poolRef")
	if old, isUpdate := r.Old.(*ipamv1.IPAddressClaim); isUpdate && old.Spec.PoolRef != claim.Spec.PoolRef {
		return Response{Errors: field.ErrorList{field.Forbidden(path, "cannot be changed")}}
	}
	return Response{Errors: validatePool(claim.Spec.PoolRef, path)}
}

func validatePool(pool ipamv1.IPPoolReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if pool.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), "set the kind of the pool"))
	}
	if pool.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "set the name of the pool"))
	}
	return errs
}
