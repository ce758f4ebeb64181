package admission

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/version"
)

// validateHostedControlPlane validates a HostedControlPlane for [Validate]: the settings of its components.
func validateHostedControlPlane(r Request, plane *hostedv1.HostedControlPlane) Response {
	var before *hostedv1.HostedControlPlaneSettings
	if old, ok := r.Old.(*hostedv1.HostedControlPlane); ok {
		before = &old.Spec.HostedControlPlaneSettings
	}
	errs := validateSettings(r, plane.Spec.HostedControlPlaneSettings, before, field.NewPath("spec"))
	return Response{Errors: errs, Warnings: versionWarning(r, plane)}
}

// versionWarning warns about a version that is not available on this host. It is not rejected, because the object may
// be for another host, or restored from a backup.
func versionWarning(r Request, plane *hostedv1.HostedControlPlane) []string {
	old, _ := r.Old.(*hostedv1.HostedControlPlane)
	want := plane.Spec.Version
	if plane.Spec.Backend.Simulated != nil || old != nil && old.Spec.Version == want {
		return nil
	}
	if old != nil && version.IsOlder(want, old.Status.Version) {
		return []string{fmt.Sprintf("spec.version: the control plane is at %s and cannot be downgraded to %s, because the newer version has written the data in etcd; it does not change until you correct the version", old.Status.Version, want)}
	}
	return unavailableVersionWarning(r, want, field.NewPath("spec", "version"))
}

// unavailableVersionWarning warns about a version that is not available on this host.
func unavailableVersionWarning(r Request, want string, path *field.Path) []string {
	have := []string{buildinfo.Kubernetes()}
	if r.KubernetesVersions != nil {
		have = r.KubernetesVersions()
	}
	if slices.Contains(have, want) {
		return nil
	}
	return []string{fmt.Sprintf("%s: this host has Kubernetes %s and not %s; the control plane is not started or upgraded until the operator adds this version (slipway versions add) or you change the version", path, strings.Join(have, ", "), want)}
}

// validateSettings validates the fields that a HostedControlPlane and its template have in common. Invalid settings
// that were stored before the rules existed, or before the operator changed the policy, are accepted while they do not
// change, so that finalizers and labels can be changed; the controller does not start any component with them.
func validateSettings(r Request, s hostedv1.HostedControlPlaneSettings, old *hostedv1.HostedControlPlaneSettings, path *field.Path) field.ErrorList {
	errs := validateFlags(s, path)
	if old != nil && len(errs) > 0 {
		before := map[string]bool{}
		for _, e := range validateFlags(*old, path) {
			before[e.Detail] = true
		}
		errs = slices.DeleteFunc(errs, func(e *field.Error) bool { return before[e.Detail] })
	}
	if old != nil && equality.Semantic.DeepEqual(old.Security, s.Security) {
		return errs
	}
	return append(errs, validateSecurity(r, s, path)...)
}

// validateSecurity validates settings that kube-apiserver reads from files, and the servers that it would connect to.
func validateSecurity(r Request, s hostedv1.HostedControlPlaneSettings, path *field.Path) field.ErrorList {
	errs := componentconfig.Problems(s.Security, path)
	if s.Authentication == nil {
		return errs
	}
	for i, a := range s.Authentication.JWT {
		if why := r.Policy.DeniedIssuer(a.Issuer.URL); why != "" {
			errs = append(errs, field.Forbidden(path.Child("authentication", "jwt").Index(i).Child("issuer", "url"), why))
		}
	}
	return errs
}

// validateFlags validates the flags of the components. [validateSettings] compares the details of its errors, so these
// must not contain positions.
func validateFlags(s hostedv1.HostedControlPlaneSettings, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, c := range []struct {
		field     string
		component componentconfig.Component
		settings  hostedv1.Component
	}{
		{"apiServer", componentconfig.APIServer, s.APIServer}, {"controllerManager", componentconfig.ControllerManager, s.ControllerManager},
		{"scheduler", componentconfig.Scheduler, s.Scheduler}, {"etcd", componentconfig.Etcd, s.Etcd},
	} {
		for i, arg := range c.settings.ExtraArgs {
			value := ""
			if arg.Value != nil {
				value = *arg.Value
			}
			if problem := componentconfig.FlagProblem(c.component, arg.Name, value); problem != "" {
				errs = append(errs, field.Forbidden(path.Child(c.field, "extraArgs").Index(i), problem))
			}
			if s.Security.Effective().PodSecurity != nil && arg.Name == "disable-admission-plugins" && slices.Contains(strings.Split(value, ","), "PodSecurity") {
				errs = append(errs, field.Forbidden(path.Child("podSecurity"),
					"has no effect while apiServer.extraArgs disable the admission plugin PodSecurity: remove one of them"))
			}
		}
	}
	return errs
}
