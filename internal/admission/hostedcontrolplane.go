package admission

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/componentflag"
)

// validateHostedControlPlane checks the flags of the components. What was stored before the rules and is not changed is
// let through, so that finalizers and labels of it can be: the controller does not start anything with it.
func validateHostedControlPlane(r Request, plane *hostedv1.HostedControlPlane) Verdict {
	errs := validateSettings(plane.Spec.HostedControlPlaneSettings, field.NewPath("spec"))
	if old, ok := r.Old.(*hostedv1.HostedControlPlane); ok && len(errs) > 0 {
		before := map[string]bool{}
		for _, e := range validateSettings(old.Spec.HostedControlPlaneSettings, field.NewPath("spec")) {
			before[e.Detail] = true
		}
		var added field.ErrorList
		for _, e := range errs {
			if !before[e.Detail] {
				added = append(added, e)
			}
		}
		errs = added
	}
	return Verdict{Errors: errs, Warnings: versionWarning(r, plane)}
}

// versionWarning tells who asks for a version that this build does not include. It is not refused: the object may be for
// another build, or come out of a backup.
func versionWarning(r Request, plane *hostedv1.HostedControlPlane) []string {
	old, _ := r.Old.(*hostedv1.HostedControlPlane)
	want, included := plane.Spec.Version, buildinfo.Kubernetes()
	if want == included || plane.Spec.Backend.Simulated != nil || old != nil && old.Spec.Version == want {
		return nil
	}
	return []string{fmt.Sprintf("spec.version: this build includes Kubernetes %s and not %s; the control plane is not started or changed until another build does, or the version is changed", included, want)}
}

// validateSettings checks what a HostedControlPlane and its template have in common.
func validateSettings(s hostedv1.HostedControlPlaneSettings, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, c := range []struct {
		field     string
		component componentflag.Component
		settings  hostedv1.Component
	}{
		{"apiServer", componentflag.APIServer, s.APIServer}, {"controllerManager", componentflag.ControllerManager, s.ControllerManager},
		{"scheduler", componentflag.Scheduler, s.Scheduler}, {"etcd", componentflag.Etcd, s.Etcd},
	} {
		for i, arg := range c.settings.ExtraArgs {
			value := ""
			if arg.Value != nil {
				value = *arg.Value
			}
			if problem := componentflag.Problem(c.component, arg.Name, value); problem != "" {
				errs = append(errs, field.Forbidden(path.Child(c.field, "extraArgs").Index(i), problem))
			}
		}
	}
	return errs
}
