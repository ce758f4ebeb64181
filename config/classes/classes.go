package classes

import (
	"embed"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/manifest"
)

// Names of the built-in classes.
const (
	Kubeadm    = "kubeadm"
	Local      = "local"
	SSH        = "ssh"
	SSHKubeadm = "ssh-kubeadm"
	simulated  = "simulated"
)

//go:embed kubeadm.yaml local.yaml simulated.yaml ssh.yaml ssh-kubeadm.yaml
var manifests embed.FS

// Names returns the names of all classes, sorted. Commands list them, and a release contains the classes. The names
// must be those of the files and of the ClusterClasses in them.
func Names() []string { return []string{Kubeadm, Local, simulated, SSH, SSHKubeadm} }

// Objects returns a class and its templates. The class is last, so that its templates exist when it is applied. An
// empty namespace is not set. It returns false if there is no built-in class of that name. `slipway create cluster` and
// `slipway generate cluster` apply or print the objects, and a release contains them.
func Objects(name, namespace string) ([]*unstructured.Unstructured, bool, error) {
	data, err := manifests.ReadFile(name + ".yaml")
	if err != nil {
		return nil, false, nil
	}
	objects, err := manifest.Objects(data)
	if err != nil {
		return nil, true, fmt.Errorf("reading class %s: %w", name, err)
	}
	if namespace != "" {
		for _, o := range objects {
			o.SetNamespace(namespace)
		}
	}
	return objects, true, nil
}
