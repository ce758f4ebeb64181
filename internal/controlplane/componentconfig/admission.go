package componentconfig

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/admission/api/load"
	podsecurityv1 "k8s.io/pod-security-admission/admission/api/v1"
	podsecurityvalidation "k8s.io/pod-security-admission/admission/api/validation"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
)

// exempt is the namespace without Pod Security Standards: the namespace of the CNI plugin and kube-proxy, whose Pods
// are privileged.
const exempt = metav1.NamespaceSystem

// eventsPerSecond and eventsAtOnce limit the Events that a hardened API server accepts in one namespace.
const eventsPerSecond, eventsAtOnce = 50, 100

// plugin is the configuration of an admission plugin.
type plugin struct {
	Name          string `json:"name"`
	Configuration any    `json:"configuration"`
}

// Admission returns the file that configures admission plugins of a hosted control plane. It is nil if no plugin needs
// a configuration. Package controlplane writes it before kube-apiserver starts.
func Admission(s hostedv1.Security) ([]byte, error) { return admission(s, "") }

// ManagementAdmission returns the file for a management cluster, whose webhooks are called with the credentials in a
// kubeconfig. Package controlplane writes it at each start of the management cluster.
func ManagementAdmission(s hostedv1.Security, webhookKubeconfig string) ([]byte, error) {
	return admission(s, webhookKubeconfig)
}

func admission(s hostedv1.Security, webhookKubeconfig string) ([]byte, error) {
	var plugins []plugin
	if webhookKubeconfig != "" {
		for _, name := range []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"} {
			plugins = append(plugins, plugin{name, webhookCredentials(webhookKubeconfig)})
		}
	}
	if s.PodSecurity != nil {
		plugins = append(plugins, plugin{"PodSecurity", podSecurity(*s.PodSecurity)})
	}
	if s.Hardening == hostedv1.HardeningRestricted {
		plugins = append(plugins, plugin{"EventRateLimit", eventRateLimit()})
	}
	if plugins == nil {
		return nil, nil
	}
	return json.Marshal(struct {
		metav1.TypeMeta `json:",inline"`
		Plugins         []plugin `json:"plugins"`
	}{configKind("AdmissionConfiguration"), plugins})
}

// webhookCredentials returns the configuration of the admission plugins that call webhooks.
func webhookCredentials(kubeconfig string) any {
	return struct {
		metav1.TypeMeta `json:",inline"`
		KubeConfigFile  string `json:"kubeConfigFile"`
	}{configKind("WebhookAdmissionConfiguration"), kubeconfig}
}

// eventRateLimit returns the configuration of the EventRateLimit plugin. Its Go types are not in a library of
// Kubernetes that can be imported.
func eventRateLimit() any {
	type limit struct {
		Type      string `json:"type"`
		QPS       int    `json:"qps"`
		Burst     int    `json:"burst"`
		CacheSize int    `json:"cacheSize"`
	}
	return struct {
		metav1.TypeMeta `json:",inline"`
		Limits          []limit `json:"limits"`
	}{
		metav1.TypeMeta{APIVersion: "eventratelimit.admission.k8s.io/v1alpha1", Kind: "Configuration"},
		[]limit{{"Namespace", eventsPerSecond, eventsAtOnce, 2000}},
	}
}

func podSecurity(p hostedv1.PodSecurity) podsecurityv1.PodSecurityConfiguration {
	namespaces := p.Exemptions.Namespaces
	if !slices.Contains(namespaces, exempt) {
		namespaces = append(slices.Clone(namespaces), exempt)
	}
	return podsecurityv1.PodSecurityConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: podsecurityv1.SchemeGroupVersion.String(), Kind: "PodSecurityConfiguration"},
		Defaults: podsecurityv1.PodSecurityDefaults{
			Enforce: string(p.Enforce.Level), EnforceVersion: p.Enforce.Version,
			Audit: string(p.Audit.Level), AuditVersion: p.Audit.Version,
			Warn: string(p.Warn.Level), WarnVersion: p.Warn.Version,
		},
		Exemptions: podsecurityv1.PodSecurityExemptions{
			Usernames: p.Exemptions.Usernames, Namespaces: namespaces, RuntimeClasses: p.Exemptions.RuntimeClasses,
		},
	}
}

// podSecurityProblems returns the problems of the Pod Security Standards in a spec, for [Problems].
func podSecurityProblems(p *hostedv1.PodSecurity, path *field.Path) field.ErrorList {
	text, err := json.Marshal(podSecurity(*p))
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	config, err := load.LoadFromData(text)
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	errs := podsecurityvalidation.ValidatePodSecurityConfiguration(config)
	for _, e := range errs {
		if standard, ok := strings.CutPrefix(e.Field, "defaults."); ok {
			if name, isVersion := strings.CutSuffix(standard, "-version"); isVersion {
				e.Field = name + ".version"
			} else {
				e.Field = standard + ".level"
			}
		}
	}
	return below(path, errs)
}
