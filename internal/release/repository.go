package release

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/config/classes"
	"github.com/slipwayhq/slipway/internal/hook/openapi"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// repositories writes the repository of each provider, for [Write]. The layout PROVIDER/VERSION/ and the file names are
// those that clusterctl reads from a local repository.
func (w *writer) repositories(c Config, version semver.Version) error {
	for _, set := range Providers() {
		folder := path.Join(string(set.Name), c.Version)
		if err := w.begin(folder); err != nil {
			return err
		}
		objects, err := providerObjects(set, componentOptions{Version: c.Version, Image: c.Image})
		if err != nil {
			return err
		}
		components, err := ComponentsYAML(objects)
		if err != nil {
			return err
		}
		if err := w.write(path.Join(folder, componentsFile(set.Name)), components); err != nil {
			return err
		}
		if err := w.write(path.Join(folder, "metadata.yaml"), metadata(version)); err != nil {
			return err
		}
		more := map[providerset.Name]func(string, Config) error{
			providerset.Core: w.openAPI, providerset.InfrastructureLocal: w.localClusters, providerset.InfrastructureSSH: w.sshClusters,
		}[set.Name]
		if more == nil {
			continue
		}
		if err := more(folder, c); err != nil {
			return err
		}
	}
	return nil
}

// componentsFile returns the name of the components file, which starts with the type of the provider.
func componentsFile(provider providerset.Name) string {
	kind := "core"
	for _, prefix := range []string{"bootstrap", "control-plane", "infrastructure"} {
		if strings.HasPrefix(string(provider), prefix+"-") {
			kind = prefix
		}
	}
	return kind + "-components.yaml"
}

// metadata returns a metadata.yaml, in clusterctl's format, in which all minor versions up to this one implement the
// current contract of Cluster API. clusterctl refuses to install a version that is missing in it.
func metadata(version semver.Version) []byte {
	var out bytes.Buffer
	out.WriteString("apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n")
	for minor := range version.Minor + 1 {
		fmt.Fprintf(&out, "- major: %d\n  minor: %d\n  contract: %s\n", version.Major, minor, clusterv1.GroupVersion.Version)
	}
	return out.Bytes()
}

// openAPI writes the OpenAPI document of the runtime hooks to the repository of the core provider.
func (w *writer) openAPI(folder string, c Config) error {
	doc, err := openapi.Document(c.Version)
	if err != nil {
		return fmt.Errorf("describing the hooks: %w", err)
	}
	text, err := openapi.YAML(doc)
	if err != nil {
		return fmt.Errorf("describing the hooks: %w", err)
	}
	return w.write(path.Join(folder, "runtime-sdk-openapi.yaml"), text)
}

// localClusters writes the cluster templates and ClusterClasses of the Local provider.
func (w *writer) localClusters(folder string, c Config) error {
	names := slices.DeleteFunc(classes.Names(), func(name string) bool { return name == classes.SSH || name == classes.SSHKubeadm })
	return w.clusters(folder, c, Flavors(), names)
}

// sshClusters writes the cluster templates and ClusterClasses of the SSH provider.
func (w *writer) sshClusters(folder string, c Config) error {
	return w.clusters(folder, c, sshFlavors(), []string{classes.SSH, classes.SSHKubeadm})
}

// clusters writes cluster templates and ClusterClasses to the repository of an infrastructure provider, where
// `clusterctl generate cluster` reads them. The prefix clusterclass- is clusterctl's.
func (w *writer) clusters(folder string, c Config, flavors []Flavor, classNames []string) error {
	examples, err := fs.Sub(c.Sources, "examples")
	if err != nil {
		return fmt.Errorf("reading the examples: %w", err)
	}
	for _, flavor := range flavors {
		objects, err := flavor.Objects(examples)
		if err != nil {
			return err
		}
		text, err := ComponentsYAML(objects)
		if err != nil {
			return err
		}
		if err := w.write(path.Join(folder, flavor.File()), text); err != nil {
			return err
		}
	}
	for _, class := range classNames {
		objects, _, err := classes.Objects(class, "")
		if err != nil {
			return err
		}
		text, err := ComponentsYAML(objects)
		if err != nil {
			return err
		}
		if err := w.write(path.Join(folder, "clusterclass-"+class+".yaml"), text); err != nil {
			return err
		}
	}
	return nil
}
