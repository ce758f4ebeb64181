package lint

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// managerContainer is the name by which clusterctl identifies the manager container of a provider.
const managerContainer = "manager"

// workloadRules are the rules of `slipway provider lint` for the workloads of a provider. Their names are stable.
func workloadRules() []Rule {
	return []Rule{
		{"deployment-present", "the components have a Deployment", true, deploymentPresent},
		{"manager-container", "every Deployment has a container named manager", true, hasManager},
		{"selector-matches", "the selector of a Deployment matches the labels of its Pods", true, selectorMatches},
		{"image-canonical", "images have a registry, a repository and a version or digest", true, imageCanonical},
		{"watches-all-namespaces", "the manager is not restricted to one namespace: a provider serves all namespaces", true, watchesAll},
		{"pod-security", "Pods conform to the Pod Security Standard \"restricted\"", false, podSecurity},
		{"probes", "the manager has a readiness and a liveness probe", false, probes},
	}
}

func deploymentPresent(r *release, report reporter) {
	if len(r.objects) > 0 && len(r.kindOf("Deployment")) == 0 {
		report(r.objects[0].file, "", "the components have no Deployment: no controller would reconcile the kinds of the provider")
	}
}

// podOf returns the Pod template of a Deployment, or an error if it cannot be parsed.
func podOf(o objectInFile) (t corev1.PodTemplateSpec, problem error) {
	content, _, err := unstructured.NestedMap(o.Object, "spec", "template")
	if err != nil {
		return t, err
	}
	return t, runtime.DefaultUnstructuredConverter.FromUnstructured(content, &t)
}

func hasManager(r *release, report reporter) {
	for _, o := range r.kindOf("Deployment") {
		t, err := podOf(o)
		if err != nil {
			report(o.file, o.id(), "spec.template is invalid: %v", err)
			continue
		}
		if managerOf(t) == nil {
			report(o.file, o.id(), "no container is named %s: clusterctl cannot find the container of the manager", managerContainer)
		}
	}
}

func managerOf(t corev1.PodTemplateSpec) *corev1.Container {
	for i, c := range t.Spec.Containers {
		if c.Name == managerContainer {
			return &t.Spec.Containers[i]
		}
	}
	return nil
}

func selectorMatches(r *release, report reporter) {
	for _, o := range r.kindOf("Deployment") {
		want, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector", "matchLabels")
		have, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
		if len(want) == 0 {
			report(o.file, o.id(), "spec.selector.matchLabels is empty")
		}
		for key, value := range want {
			if have[key] != value {
				report(o.file, o.id(), "the selector requires the label %s=%s, which the Pods do not have", key, value)
			}
		}
	}
}

func imageCanonical(r *release, report reporter) {
	for _, o := range r.kindOf("Deployment", "DaemonSet", "StatefulSet") {
		t, err := podOf(o)
		if err != nil {
			continue
		}
		for _, c := range append(t.Spec.InitContainers, t.Spec.Containers...) {
			if problem := imageProblem(c.Image); problem != "" {
				report(o.file, o.id(), "container %s has the image %q: %s", c.Name, c.Image, problem)
			}
		}
	}
}

func imageProblem(image string) string {
	registry, rest, ok := strings.Cut(image, "/")
	if !ok || !strings.ContainsAny(registry, ".:") && registry != "localhost" {
		return "add its registry, because image overrides of clusterctl require it"
	}
	_, digest, hasDigest := strings.Cut(rest, "@")
	_, tag, hasTag := strings.Cut(rest[strings.LastIndex(rest, "/")+1:], ":")
	switch {
	case hasDigest && digest != "":
		return ""
	case !hasTag || tag == "":
		return "add its version"
	case tag == "latest" || tag == "main" || tag == "dev":
		return "a release must use a version, not " + tag
	}
	return ""
}

func watchesAll(r *release, report reporter) {
	for _, o := range r.kindOf("Deployment") {
		t, err := podOf(o)
		if err != nil {
			continue
		}
		for _, c := range t.Spec.Containers {
			for i, a := range c.Args {
				value, ok := strings.CutPrefix(a, "--namespace=")
				if a == "--namespace" && i+1 < len(c.Args) {
					value, ok = c.Args[i+1], true
				}
				if ok && value != "" {
					report(o.file, o.id(), "container %s has --namespace %s: remove the flag", c.Name, value)
				}
			}
		}
	}
}

func podSecurity(r *release, report reporter) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		report("", "", "the Pod Security Standard cannot be evaluated: %v", err)
		return
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, o := range r.kindOf("Deployment", "DaemonSet", "StatefulSet") {
		t, err := podOf(o)
		if err != nil {
			continue
		}
		meta := metav1.ObjectMeta{Labels: t.Labels, Annotations: t.Annotations}
		for _, result := range checks.EvaluatePod(restricted, &meta, &t.Spec) {
			if !result.Allowed {
				report(o.file, o.id(), "%s: %s", result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
	}
}

func probes(r *release, report reporter) {
	for _, o := range r.kindOf("Deployment") {
		t, err := podOf(o)
		if err != nil {
			continue
		}
		c := managerOf(t)
		if c != nil && (c.ReadinessProbe == nil || c.LivenessProbe == nil) {
			report(o.file, o.id(), "container %s lacks a readiness or liveness probe: without them, it counts as available before it is ready", c.Name)
		}
	}
}
