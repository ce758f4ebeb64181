package admission

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
)

// validateKubeadmConfigTemplate validates the template of KubeadmConfigs. The spec is mutable, so dry runs of the
// topology controller need no exception. [Validate] calls it.
func validateKubeadmConfigTemplate(r Request, template *bootstrapv1.KubeadmConfigTemplate) Response {
	path := field.NewPath("spec", "template")
	errs := template.Spec.Template.ObjectMeta.Validate(path.Child("metadata"))
	errs = append(errs, validateKubeadmConfig(r, &template.Spec.Template.Spec, path.Child("spec"))...)
	return Response{Errors: errs}
}

// validateKubeadmConfig validates the bootstrap configuration in a KubeadmConfig, a KubeadmControlPlane or one of their
// templates, on create and update. [Validate] calls it for KubeadmConfigs, and the validation of the other kinds calls
// it for theirs.
func validateKubeadmConfig(r Request, spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateFiles(spec, path.Child("files"))...)
	errs = append(errs, validateUsers(spec, path.Child("users"))...)
	errs = append(errs, validateDisks(spec, path.Child("diskSetup"))...)
	errs = append(errs, validateFormat(spec, r.Gates, path)...)
	return append(errs, validateSources(r, spec, path)...)
}

// validateFiles checks that each file has only one source of content and a unique path.
func validateFiles(spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, file := range spec.Files {
		if file.Content != "" && file.ContentFrom.IsDefined() {
			errs = append(errs, field.Invalid(path.Index(i), file.Path, "only one of content and contentFrom may be set"))
		}
		if seen[file.Path] {
			errs = append(errs, field.Duplicate(path.Index(i).Child("path"), file.Path))
		}
		seen[file.Path] = true
	}
	return errs
}

// validateUsers checks that each user has at most one password.
func validateUsers(spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, user := range spec.Users {
		if user.Passwd != "" && user.PasswdFrom.IsDefined() {
			errs = append(errs, field.Invalid(path.Index(i), user.Name, "only one of passwd and passwdFrom may be set"))
		}
	}
	return errs
}

// validateSources rejects references to Secrets with credentials of a cluster, if the policy denies them, because not
// every user may read Secrets. Existing references are accepted, so that finalizers can be removed; the controller does
// not copy denied content.
func validateSources(r Request, spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	before := map[string]bool{}
	if old := kubeadmConfigOf(r.Old); old != nil {
		for _, file := range old.Files {
			before[file.ContentFrom.Secret.Name] = true
		}
		for _, user := range old.Users {
			before[user.PasswdFrom.Secret.Name] = true
		}
	}
	check := func(name string, path *field.Path) {
		if why := r.Policy.DeniedSecret(name, ""); why != "" && !before[name] {
			errs = append(errs, field.Forbidden(path.Child("secret", "name"), why))
		}
	}
	for i, file := range spec.Files {
		check(file.ContentFrom.Secret.Name, path.Child("files").Index(i).Child("contentFrom"))
	}
	for i, user := range spec.Users {
		check(user.PasswdFrom.Secret.Name, path.Child("users").Index(i).Child("passwdFrom"))
	}
	return errs
}

// kubeadmConfigOf returns the bootstrap configuration in an object, or nil.
func kubeadmConfigOf(o runtime.Object) *bootstrapv1.KubeadmConfigSpec {
	switch o := o.(type) {
	case *bootstrapv1.KubeadmConfig:
		return &o.Spec
	case *bootstrapv1.KubeadmConfigTemplate:
		return &o.Spec.Template.Spec
	case *controlplanev1.KubeadmControlPlane:
		return &o.Spec.KubeadmConfigSpec
	case *controlplanev1.KubeadmControlPlaneTemplate:
		return &o.Spec.Template.Spec.KubeadmConfigSpec
	}
	return nil
}

// validateDisks checks that the partitions of a disk do not exceed 100 percent.
func validateDisks(spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, partition := range spec.DiskSetup.Partitions {
		sum := int32(0)
		for _, part := range partition.DiskLayout {
			sum += part.Percentage
		}
		if sum > 100 {
			errs = append(errs, field.Invalid(path.Child("partitions").Index(i).Child("diskLayout"), sum,
				"the sum of the percentages must be at most 100"))
		}
	}
	return errs
}

// validateFormat validates the format, and rejects settings that it does not support.
func validateFormat(spec *bootstrapv1.KubeadmConfigSpec, gates Gates, path *field.Path) field.ErrorList {
	ignition := spec.Format == bootstrapv1.Ignition
	var errs field.ErrorList
	if !gates.KubeadmBootstrapFormatIgnition {
		const use = "requires the feature gate KubeadmBootstrapFormatIgnition: "
		if ignition {
			errs = append(errs, field.Forbidden(path.Child("format"), use+"remove it, or set cloud-config"))
		}
		if spec.Ignition.IsDefined() {
			errs = append(errs, field.Forbidden(path.Child("ignition"), use+"remove it"))
		}
		return errs
	}
	if !ignition {
		if spec.Ignition.IsDefined() {
			errs = append(errs, field.Invalid(path.Child("format"), spec.Format, "must be ignition if spec.ignition is set"))
		}
		return errs
	}
	return validateIgnition(spec, path)
}

// validateIgnition rejects settings that Ignition does not support.
func validateIgnition(spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	const cannot = "is not supported with the format ignition"
	var errs field.ErrorList
	for i, user := range spec.Users {
		if user.Inactive != nil && *user.Inactive {
			errs = append(errs, field.Forbidden(path.Child("users").Index(i).Child("inactive"), cannot))
		}
	}
	for i, file := range spec.Files {
		if file.Encoding == bootstrapv1.Gzip || file.Encoding == bootstrapv1.GzipBase64 {
			errs = append(errs, field.Forbidden(path.Child("files").Index(i).Child("encoding"),
				string(file.Encoding)+" "+cannot))
		}
	}
	if len(spec.BootCommands) > 0 {
		errs = append(errs, field.Forbidden(path.Child("bootCommands"), cannot))
	}
	return append(errs, validateIgnitionDisks(spec, path.Child("diskSetup"))...)
}

func validateIgnitionDisks(spec *bootstrapv1.KubeadmConfigSpec, path *field.Path) field.ErrorList {
	const cannot = "is not supported with the format ignition"
	var errs field.ErrorList
	for i, partition := range spec.DiskSetup.Partitions {
		if partition.TableType != "" && partition.TableType != "gpt" {
			errs = append(errs, field.Forbidden(path.Child("partitions").Index(i).Child("tableType"),
				partition.TableType+" "+cannot+", only gpt is"))
		}
	}
	for i, filesystem := range spec.DiskSetup.Filesystems {
		at := path.Child("filesystems").Index(i)
		if filesystem.ReplaceFS != "" {
			errs = append(errs, field.Forbidden(at.Child("replaceFS"), cannot))
		}
		if filesystem.Partition != "" {
			errs = append(errs, field.Forbidden(at.Child("partition"), cannot))
		}
	}
	return errs
}
