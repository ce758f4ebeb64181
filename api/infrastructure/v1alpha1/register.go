package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "infrastructure.slipway.dev", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package, and their lists, with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&LocalCluster{}, &LocalClusterList{},
		&LocalClusterTemplate{}, &LocalClusterTemplateList{},
		&LocalMachine{}, &LocalMachineList{},
		&LocalMachineTemplate{}, &LocalMachineTemplateList{},
		&LocalMachinePool{}, &LocalMachinePoolList{},
		&LocalMachinePoolTemplate{}, &LocalMachinePoolTemplateList{},
		&SSHHost{}, &SSHHostList{},
		&SSHCluster{}, &SSHClusterList{},
		&SSHClusterTemplate{}, &SSHClusterTemplateList{},
		&SSHMachine{}, &SSHMachineList{},
		&SSHMachineTemplate{}, &SSHMachineTemplateList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
