package conversion

import "reflect"

// isPlainInOtherVersion reports whether a field is a pointer in one version and a plain value in another, in which
// false, 0 and "" are not distinguished from absent. The API module converts them to pointers to zero values, although
// absent is meant. The argument is the Go type and field in the version with the pointer. The lists follow from the
// types of the API module and change with them; random objects in the tests find a missing field.
func isPlainInOtherVersion(field string) bool { return plainInSpokes(field) || plainInHub(field) }

// plainInHub reports whether a field is a pointer in older versions only.
func plainInHub(field string) bool {
	switch field {
	case
		// core
		"ClusterClassPatch.EnabledIf",
		"ClusterNetwork.APIServerPort",
		"ExternalPatchDefinition.DiscoverVariablesExtension",
		"JSONPatchValue.Template",
		"JSONPatchValue.Variable",
		"MachineDeploymentClass.FailureDomain",
		"MachineDeploymentTopology.FailureDomain",
		"MachineSpec.FailureDomain",
		"MachineSpec.ProviderID",
		"MachineSpec.Version",
		// bootstrap
		"Filesystem.Partition",
		"Filesystem.ReplaceFS",
		"KubeadmConfigStatus.DataSecretName",
		"Partition.TableType",
		"User.Gecos",
		"User.Groups",
		"User.HomeDir",
		"User.Passwd",
		"User.PrimaryGroup",
		"User.Shell",
		"User.Sudo",
		// control plane
		"KubeadmControlPlaneStatus.Version",
		// runtime
		"ClientConfig.URL",
		"ExtensionHandler.TimeoutSeconds",
		"ServiceReference.Path":
		return true
	}
	return false
}

// plainInSpokes reports whether a field is a pointer in the hub only. It excludes fields that the hub requires.
func plainInSpokes(field string) bool {
	switch field {
	case
		// core
		"ClusterSpec.Paused",
		"MachineDeploymentSpec.Paused",
		"ClusterClassStatusVariable.DefinitionsConflict",
		"JSONSchemaProps.UniqueItems",
		"JSONSchemaProps.ExclusiveMaximum",
		"JSONSchemaProps.ExclusiveMinimum",
		"JSONSchemaProps.XPreserveUnknownFields",
		"JSONSchemaProps.XIntOrString",
		"PatchSelectorMatch.ControlPlane",
		"PatchSelectorMatch.InfrastructureCluster",
		"FailureDomain.ControlPlane",
		"MachineDeploymentStatus.Replicas",
		"MachineSetStatus.Replicas",
		"MachinePoolStatus.Replicas",
		"MachineHealthCheckStatus.ExpectedMachines",
		"MachineHealthCheckStatus.CurrentHealthy",
		"MachineHealthCheckStatus.RemediationsAllowed",
		// bootstrap
		"BootstrapTokenDiscovery.UnsafeSkipCAVerification",
		"ContainerLinuxConfig.Strict",
		"File.Append",
		"HostPathMount.ReadOnly",
		"KubeConfigAuthExec.ProvideClusterInfo",
		"KubeConfigCluster.InsecureSkipTLSVerify",
		// control plane
		"KubeadmControlPlaneStatus.Replicas",
		"KubeadmControlPlaneRemediationSpec.RetryPeriodSeconds":
		return true
	}
	return false
}

// dropZeros removes pointers to false, 0 and "" from the fields for which isPlainInOtherVersion is true. [Converter]
// calls it on every object that the API module has converted.
func dropZeros(object any) { dropIn(reflect.ValueOf(object)) }

func dropIn(value reflect.Value) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			dropIn(value.Elem())
		}
	case reflect.Slice:
		for i := range value.Len() {
			dropIn(value.Index(i))
		}
	case reflect.Map:
		dropInMap(value)
	case reflect.Struct:
		dropInStruct(value)
	}
}

// dropInMap processes maps of structs, such as the properties of schemas.
func dropInMap(value reflect.Value) {
	if value.Type().Elem().Kind() != reflect.Struct {
		return
	}
	for _, key := range value.MapKeys() {
		item := reflect.New(value.Type().Elem()).Elem()
		item.Set(value.MapIndex(key))
		dropIn(item)
		value.SetMapIndex(key, item)
	}
}

func dropInStruct(value reflect.Value) {
	for i := range value.NumField() {
		field, of := value.Field(i), value.Type().Field(i)
		if !of.IsExported() {
			continue
		}
		if field.Kind() == reflect.Pointer && !field.IsNil() && field.Elem().IsZero() &&
			isPlainInOtherVersion(value.Type().Name()+"."+of.Name) {
			field.SetZero()
			continue
		}
		dropIn(field)
	}
}
