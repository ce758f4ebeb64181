package conversion

import "reflect"

// plainElsewhere names the fields that one version has a pointer for and another has not: there false, 0 and "" are
// not told from absent. The API module turns them into pointers to those; absent is what was meant.
// The key is the Go type and field of the version with the pointer.
func plainElsewhere(field string) bool { return plainInSpokes(field) || plainInHub(field) }

// plainInHub names the pointers of older versions.
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

// plainInSpokes names the pointers of the hub. Fields that the hub requires are not among them.
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

// dropZeros removes pointers to false, 0 and "" from the fields that plainElsewhere names.
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

// dropInMap handles the maps of structs: properties of schemas and the like.
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
			plainElsewhere(value.Type().Name()+"."+of.Name) {
			field.SetZero()
			continue
		}
		dropIn(field)
	}
}
