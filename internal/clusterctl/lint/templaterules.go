package lint

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/substitution"
)

// templateRules are about cluster templates and ClusterClasses.
func templateRules() []Rule {
	return []Rule{
		{"template-present", "an infrastructure provider has cluster-template.yaml", false, templatePresent},
		{"template-cluster", "a cluster template has one Cluster named ${CLUSTER_NAME}", true, templateCluster},
		{"template-namespace", "every object of a cluster template is in ${NAMESPACE}", true, templateNamespace},
		{"template-variables", "a cluster template uses KUBERNETES_VERSION", false, templateVariables},
		{"class-name", "clusterclass-NAME.yaml has the ClusterClass NAME", true, className},
		{"class-namespace", "objects of a ClusterClass file have no namespace: they get that of the Cluster", true, classNamespace},
		{"class-variables", "ClusterClass files have no variables", true, classVariables},
	}
}

func templatePresent(r *release, report reporter) {
	if r.kind == provider.Infrastructure && len(r.names(templatePrefix)) == 0 {
		report("", "", "there is none: clusterctl generate cluster would not work without --from")
	}
}

// each calls do with the objects of the files with a prefix that can be read.
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
		clusters := 0
		for _, o := range objects {
			if o.GetKind() != "Cluster" || o.GroupVersionKind().Group != "cluster.x-k8s.io" {
				continue
			}
			if clusters++; o.GetName() != want {
				report(file, idOf(o), "its name is not ${CLUSTER_NAME}: every cluster would have the same")
			}
		}
		if clusters != 1 {
			report(file, "", "it has %d Clusters, want one", clusters)
		}
	})
}

func templateNamespace(r *release, report reporter) {
	want := sample("NAMESPACE")
	r.each(templatePrefix, func(file string, objects []*unstructured.Unstructured) {
		for _, o := range objects {
			if got := o.GetNamespace(); got != want {
				report(file, idOf(o), "its namespace is %q: write ${NAMESPACE}", got)
			}
		}
	})
}

func templateVariables(r *release, report reporter) {
	for _, file := range r.names(templatePrefix) {
		variables, err := substitution.Envsubst{}.Variables(r.files[file])
		if err != nil {
			continue
		}
		found := false
		for _, v := range variables {
			found = found || v.Name == "KUBERNETES_VERSION"
		}
		if !found {
			report(file, "", "${KUBERNETES_VERSION} is not in it: --kubernetes-version would have no effect")
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
		report(file, "", "it has no ClusterClass %s", want)
	})
}

func classNamespace(r *release, report reporter) {
	r.each(classPrefix, func(file string, objects []*unstructured.Unstructured) {
		for _, o := range objects {
			if o.GetNamespace() != "" {
				report(file, idOf(o), "it has the namespace %s: leave it out", o.GetNamespace())
			}
		}
	})
}

func classVariables(r *release, report reporter) {
	for _, file := range r.names(classPrefix) {
		variables, err := substitution.Envsubst{}.Variables(r.files[file])
		switch {
		case err != nil:
			report(file, "", "$ and a brace are in it: %v", err)
		case len(variables) > 0:
			report(file, "", "it has the variable %s: use variables of the ClusterClass", variables[0].Name)
		}
	}
}
