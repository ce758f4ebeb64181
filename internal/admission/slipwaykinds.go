package admission

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

// validateOwnTemplate validates a template of Slipway's own kinds for [Validate]: its labels and annotations, and that
// its spec is immutable, because objects may reference it. Dry runs of the topology controller, which have an
// annotation, may change the spec.
func validateOwnTemplate(r Request) Response {
	path := field.NewPath("spec", "template")
	meta, spec := templateOf(r.New)
	errs := meta.Validate(path.Child("metadata"))
	if template, ok := r.New.(*hostedv1.HostedControlPlaneTemplate); ok {
		var old *hostedv1.HostedControlPlaneSettings
		if before, ok := r.Old.(*hostedv1.HostedControlPlaneTemplate); ok {
			old = &before.Spec.Template.Spec
		}
		errs = append(errs, validateSettings(r, template.Spec.Template.Spec, old, path.Child("spec"))...)
	}
	errs = append(errs, validateSSHTemplate(r, path.Child("spec"))...)
	if r.Old == nil || isTopologyDryRun(r) {
		return Response{Errors: errs}
	}
	if _, before := templateOf(r.Old); !equality.Semantic.DeepEqual(before, spec) {
		errs = append(errs, field.Forbidden(path,
			"cannot be changed: create a new template and reference it instead"))
	}
	return Response{Errors: errs}
}

// isTopologyDryRun reports whether a request is a dry run of the topology controller.
func isTopologyDryRun(r Request) bool {
	object, ok := r.New.(metav1.Object)
	if !ok || !r.DryRun {
		return false
	}
	_, asks := object.GetAnnotations()[clusterv1.TopologyDryRunAnnotation]
	return asks
}

// templateOf returns the labels and annotations in a template, and its immutable part. Every kind for which [Validate]
// calls validateOwnTemplate needs a case, because the spec of a kind without one could be changed.
func templateOf(object runtime.Object) (clusterv1.ObjectMeta, any) {
	switch template := object.(type) {
	case *localv1.LocalClusterTemplate:
		return template.Spec.Template.ObjectMeta, template.Spec.Template
	case *localv1.LocalMachineTemplate:
		return template.Spec.Template.ObjectMeta, template.Spec.Template
	case *localv1.LocalMachinePoolTemplate:
		return template.Spec.Template.ObjectMeta, template.Spec.Template
	case *localv1.SSHClusterTemplate:
		return template.Spec.Template.ObjectMeta, template.Spec.Template
	case *localv1.SSHMachineTemplate:
		return template.Spec.Template.ObjectMeta, template.Spec.Template
	case *hostedv1.HostedControlPlaneTemplate:
		return template.Spec.Template.ObjectMeta, template.Spec.Template
	}
	return clusterv1.ObjectMeta{}, nil
}

// validateLocalMachinePool validates the labels and annotations for the pool's LocalMachines. [Validate] calls it.
func validateLocalMachinePool(r Request, pool *localv1.LocalMachinePool) Response {
	errs := pool.Spec.Template.ObjectMeta.Validate(field.NewPath("spec", "template", "metadata"))
	return Response{Errors: append(errs, validateManager(r)...)}
}

// validateManager rejects removing the managed-by annotation from an infrastructure object: the controller would create
// infrastructure that already exists. The value of the annotation may change, because no controller uses it. The
// validations of LocalClusters, LocalMachines, LocalMachinePools, SSHClusters and SSHMachines call it.
func validateManager(r Request) field.ErrorList {
	before, ok := r.Old.(metav1.Object)
	after, ok2 := r.New.(metav1.Object)
	if !ok || !ok2 {
		return nil
	}
	_, managed := before.GetAnnotations()[clusterv1.ManagedByAnnotation]
	if _, stays := after.GetAnnotations()[clusterv1.ManagedByAnnotation]; !managed || stays {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "annotations").Key(clusterv1.ManagedByAnnotation),
		"cannot be removed, because another system manages this object: delete it, and create it without the annotation")}
}
