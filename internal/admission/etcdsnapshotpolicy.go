package admission

import (
	"path"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/snapshots"
)

// validateEtcdSnapshotPolicy checks, for [Validate], that schedule, selector and recipients are valid, and that the
// operator's policy allows the destination; the CRD cannot check these. An unchanged spec is accepted, so that
// finalizers and labels can be changed; the controller does not use a destination that is not allowed.
func validateEtcdSnapshotPolicy(r Request, policy *hostedv1.EtcdSnapshotPolicy) Response {
	if old, ok := r.Old.(*hostedv1.EtcdSnapshotPolicy); ok && equality.Semantic.DeepEqual(old.Spec, policy.Spec) {
		return Response{}
	}
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if _, err := snapshots.ParseSchedule(policy.Spec.Schedule); err != nil {
		errs = append(errs, field.Invalid(spec.Child("schedule"), policy.Spec.Schedule, fault.UserMessage(err)))
	}
	if policy.Spec.ClusterSelector != nil {
		if _, err := metav1.LabelSelectorAsSelector(policy.Spec.ClusterSelector); err != nil {
			errs = append(errs, field.Invalid(spec.Child("clusterSelector"), *policy.Spec.ClusterSelector, err.Error()))
		}
	}
	for i, recipient := range policy.Spec.Encryption.Recipients {
		if _, err := snapshots.ParseRecipients([]string{recipient}); err != nil {
			errs = append(errs, field.Invalid(spec.Child("encryption", "recipients").Index(i), recipient, "must be a recipient of age, which begins with age1; age-keygen prints it"))
		}
	}
	to := spec.Child("destination")
	if folder := policy.Spec.Destination.Folder; folder != nil && folder.Path != "" {
		if path.Clean(folder.Path) != folder.Path {
			errs = append(errs, field.Invalid(to.Child("folder", "path"), folder.Path, "must not contain .. or end with a slash"))
		} else if why := r.Policy.DeniedSnapshotFolder(policy.Namespace, folder.Path); why != "" {
			errs = append(errs, field.Forbidden(to.Child("folder", "path"), why))
		}
	}
	if s3 := policy.Spec.Destination.S3; s3 != nil {
		if why := r.Policy.DeniedSnapshotEndpoint(s3.Endpoint); why != "" {
			errs = append(errs, field.Forbidden(to.Child("s3", "endpoint"), why))
		}
	}
	return Response{Errors: errs}
}
