package lint

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
)

// templateRules are the rules of `slipway provider lint` for cluster templates and ClusterClasses. Their names are
// stable.
func templateRules() []Rule {
	return []Rule{
		{"template-present", "an infrastructure provider has cluster-template.yaml", false, templatePresent},
		{"template-cluster", "a cluster template has one Cluster named ${CLUSTER_NAME}", true, templateCluster},
		{"template-without-cluster", "a cluster template has a Cluster in addition to its ClusterClasses", false, templateWithoutCluster},
		{"template-namespace", "objects of a cluster template have the namespace ${NAMESPACE} or none: clusterctl creates all of them in one namespace", true, templateNamespace},
		{"template-variables", "a cluster template uses KUBERNETES_VERSION", false, templateVariables},
		{"class-name", "clusterclass-NAME.yaml contains the ClusterClass NAME", true, className},
		{"class-namespace", "objects of a ClusterClass file have no namespace: they are created in the namespace of the Cluster", false, classNamespace},
		{"class-readable", "ClusterClass files are valid templates", true, classReadable},
		{"class-variables", "ClusterClass files have no variables", false, classVariables},
	}
}

func templatePresent(r *release, report reporter) {
	if r.kind == provider.Infrastructure && len(r.names(templatePrefix)) == 0 {
		report("", "", "the release has no cluster template: clusterctl generate cluster would fail without --from")
	}
}

// each calls do for every parsable file with the prefix.
func (r *release) each(prefix string, do func(file string, objects []*unstructured.Unstructured)) {
	for _, file := range r.names(prefix) {
		if objects, err := r.read(file); err == nil {
			do(file, objects)
		}
	}
}

func idOf(o *unstructured.Unstructured) string { return o.GetKind() + "/" + o.GetName() }

func templateCluster(r *release, report reporter) {
	want := sample("CLUSTER_NAME")
	r.each(templatePrefix, func(file string, objects []*unstructured.Unstructured) {
		clusters := coreObjects(objects, "Cluster")
		for _, o := range clusters {
			if o.GetName() != want {
				report(file, idOf(o), "its name is not ${CLUSTER_NAME}: all clusters would have the same name")
			}
		}
		if len(clusters) > 1 || len(clusters) == 0 && len(coreObjects(objects, "ClusterClass")) == 0 {
			report(file, "", "the template has %d Clusters, want one", len(clusters))
		}
	})
}

// templateWithoutCluster reports templates with a ClusterClass but without a Cluster.
func templateWithoutCluster(r *release, report reporter) {
	r.each(templatePrefix, func(file string, objects []*unstructured.Unstructured) {
		if len(coreObjects(objects, "Cluster")) == 0 && len(coreObjects(objects, "ClusterClass")) > 0 {
			report(file, "", "the template has a ClusterClass and no Cluster: publish the ClusterClass as %sNAME.yaml, and a Cluster that uses it as the template", classPrefix)
		}
	})
}

// coreObjects returns the objects of a core Cluster API kind.
func coreObjects(objects []*unstructured.Unstructured, kind string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() == kind && o.GroupVersionKind().Group == "cluster.x-k8s.io" {
			out = append(out, o)
		}
	}
	return out
}

func templateNamespace(r *release, report reporter) {
	want := sample("NAMESPACE")
	r.each(templatePrefix, func(file string, objects []*unstructured.Unstructured) {
		for _, o := range objects {
			if got := o.GetNamespace(); got != "" && got != want {
				report(file, idOf(o), "its namespace is %q: use ${NAMESPACE}, or omit the namespace", got)
			}
		}
	})
}

func templateVariables(r *release, report reporter) {
	for _, file := range r.names(templatePrefix) {
		variables, err := repository.Envsubst{}.Variables(r.files[file])
		if err != nil {
			continue
		}
		found := false
		for _, v := range variables {
			found = found || v.Name == "KUBERNETES_VERSION"
		}
		if !found {
			report(file, "", "the template does not use ${KUBERNETES_VERSION}: --kubernetes-version would have no effect")
		}
	}
}

func className(r *release, report reporter) {
	r.each(classPrefix, func(file string, objects []*unstructured.Unstructured) {
		want := strings.TrimSuffix(strings.TrimPrefix(file, classPrefix), ".yaml")
		for _, o := range objects {
			if o.GetKind() == "ClusterClass" && o.GetName() == want {
				return
			}
		}
		report(file, "", "the file has no ClusterClass %s", want)
	})
}

func classNamespace(r *release, report reporter) {
	r.each(classPrefix, func(file string, objects []*unstructured.Unstructured) {
		for _, o := range objects {
			if o.GetNamespace() != "" {
				report(file, idOf(o), "it has the namespace %s: omit the namespace", o.GetNamespace())
			}
		}
	})
}

func classReadable(r *release, report reporter) {
	for _, file := range r.names(classPrefix) {
		if _, err := (repository.Envsubst{}).Variables(r.files[file]); err != nil {
			report(file, "", "the file contains an invalid variable: %v", err)
		}
	}
}

func classVariables(r *release, report reporter) {
	for _, file := range r.names(classPrefix) {
		if variables, err := (repository.Envsubst{}).Variables(r.files[file]); err == nil && len(variables) > 0 {
			report(file, "", "the file has the variable %s: use variables of the ClusterClass instead", variables[0].Name)
		}
	}
}
