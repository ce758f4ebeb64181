package webhook

import (
	"fmt"
	"net/url"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/conversion"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// Paths of the handlers, which [Register] serves and the configurations name.
const (
	mutatePath   = "/mutate"
	validatePath = "/validate"
	convertPath  = "/convert"
)

// callTimeoutSeconds is the timeout of a webhook call, set to the maximum that Kubernetes allows. On a busy
// host, calls can take seconds when many objects are applied at once.
const callTimeoutSeconds = 30

// Address defines how the API server reaches the webhooks, by URL or through a Service, and the providers
// that they serve. The manager computes it from its flags, and package release for the manifests of a release.
type Address struct {
	// URL is used if the API server is on the same host. It consists of scheme, host and port, for example
	// https://127.0.0.1:9443.
	URL string

	// Service is used if the manager runs in the cluster of the API server. It is ignored if URL is set.
	Service Service

	// Sets are the providers whose webhooks are served at the address. Nil means all.
	Sets []providerset.Set

	// MostReplicas is the number of replicas up to which scaling an object calls no webhook. 0 means any
	// number.
	MostReplicas int32
}

// Service is a Kubernetes Service in front of the managers.
type Service struct {
	Namespace, Name string
	Port            int32 // defaults to 443
}

// names returns the host names and IPs of the serving certificate. [Certificates] issues the certificate for them.
func (a Address) names() []string {
	if a.URL != "" {
		if parsed, err := url.Parse(a.URL); err == nil {
			return []string{parsed.Hostname()}
		}
		return nil
	}
	host := a.Service.Name + "." + a.Service.Namespace + ".svc"
	return []string{host, host + ".cluster.local"}
}

// admissionClient returns the client configuration of one path for webhook configurations.
func (a Address) admissionClient(path string, ca []byte) admissionregistrationv1.WebhookClientConfig {
	if a.URL != "" {
		return admissionregistrationv1.WebhookClientConfig{URL: new(strings.TrimSuffix(a.URL, "/") + path), CABundle: ca}
	}
	return admissionregistrationv1.WebhookClientConfig{CABundle: ca, Service: &admissionregistrationv1.ServiceReference{
		Namespace: a.Service.Namespace, Name: a.Service.Name, Path: new(path), Port: new(a.Service.port()),
	}}
}

// conversionClient returns the client configuration of the conversion webhook for CRDs. [Install] passes it to package
// crds.
func (a Address) conversionClient(ca []byte) *apiextensionsv1.WebhookClientConfig {
	if a.URL != "" {
		return &apiextensionsv1.WebhookClientConfig{URL: new(strings.TrimSuffix(a.URL, "/") + convertPath), CABundle: ca}
	}
	return &apiextensionsv1.WebhookClientConfig{CABundle: ca, Service: &apiextensionsv1.ServiceReference{
		Namespace: a.Service.Namespace, Name: a.Service.Name, Path: new(convertPath), Port: new(a.Service.port()),
	}}
}

func (s Service) port() int32 {
	if s.Port == 0 {
		return 443
	}
	return s.Port
}

// configurations returns, for [Install] and [Objects], the webhook configurations of each provider, without empty ones.
// There is one pair for each provider, because another process or implementation may serve other providers.
func configurations(address Address, ca []byte) []client.Object {
	var out []client.Object
	for _, set := range address.sets() {
		if config := mutating(set, address, ca); len(config.Webhooks) > 0 {
			out = append(out, config)
		}
		if config := validating(set, address, ca); len(config.Webhooks) > 0 {
			out = append(out, config)
		}
	}
	return out
}

func (a Address) sets() []providerset.Set {
	if a.Sets == nil {
		return providerset.All()
	}
	return a.Sets
}

// mutating returns the configuration of the defaulting webhooks.
func mutating(set providerset.Set, address Address, ca []byte) *admissionregistrationv1.MutatingWebhookConfiguration {
	config := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: set.MutatingWebhookName()}}
	config.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"))
	for _, k := range kindsOf(set) {
		if k.lacks == "" {
			continue
		}
		config.Webhooks = append(config.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name:                    "default." + k.name(),
			ClientConfig:            address.admissionClient(mutatePath, ca),
			Rules:                   k.rules(),
			MatchConditions:         []admissionregistrationv1.MatchCondition{{Name: "lacks-a-default", Expression: k.lacks}},
			MatchPolicy:             new(admissionregistrationv1.Equivalent),
			FailurePolicy:           new(admissionregistrationv1.Fail),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			ReinvocationPolicy:      new(admissionregistrationv1.IfNeededReinvocationPolicy),
			TimeoutSeconds:          new(int32(callTimeoutSeconds)),
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	return config
}

// validating returns the configuration of the validating webhooks.
func validating(set providerset.Set, address Address, ca []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: set.ValidatingWebhookName()}}
	config.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"))
	for _, k := range kindsOf(set) {
		config.Webhooks = append(config.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: "validate." + k.name(), Rules: k.validated(),
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "touches-a-rule", Expression: k.touches(address.MostReplicas)}},
		})
		if wrong := k.scalesWrong(address.MostReplicas); wrong != "" {
			config.Webhooks = append(config.Webhooks, admissionregistrationv1.ValidatingWebhook{
				Name: "scale." + k.name(), Rules: k.scaleRules(),
				MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "scales-wrong", Expression: wrong}},
			})
		}
	}
	for i := range config.Webhooks {
		w := &config.Webhooks[i]
		w.ClientConfig, w.TimeoutSeconds = address.admissionClient(validatePath, ca), new(int32(callTimeoutSeconds))
		w.MatchPolicy, w.FailurePolicy = new(admissionregistrationv1.Equivalent), new(admissionregistrationv1.Fail)
		w.SideEffects, w.AdmissionReviewVersions = new(admissionregistrationv1.SideEffectClassNone), []string{"v1"}
	}
	return config
}

// scaleSubresource is the subresource through which `kubectl scale` and autoscalers change replicas.
const scaleSubresource = "scale"

// scaleRules matches updates of the scale subresource.
func (k kind) scaleRules() []admissionregistrationv1.RuleWithOperations {
	rules := k.rules()
	rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
	rules[0].Resources = []string{k.resource.Resource + "/" + scaleSubresource}
	return rules
}

// scalesWrong returns a CEL expression that is true for scale requests that validation may reject. It is
// empty if there are none.
func (k kind) scalesWrong(mostReplicas int32) string {
	var conditions []string
	if k.scales && mostReplicas > 0 {
		conditions = append(conditions, scalesBeyond(mostReplicas))
	}
	if k.scaled != "" {
		conditions = append(conditions, k.scaled)
	}
	return strings.Join(conditions, " || ")
}

// scalesBeyond returns a CEL expression that is true for an update that increases the replicas beyond the
// limit.
func scalesBeyond(most int32) string {
	const replicas = `.?spec.?replicas.orValue(0)`
	return fmt.Sprintf("object%s > %d && object%s > oldObject%s", replicas, most, replicas, replicas)
}

// name returns the full name of a webhook's resource, for example machines.cluster.x-k8s.io.
func (k kind) name() string { return k.resource.Resource + "." + k.resource.Group }

// rules matches creation and updates of the resource, but neither its status nor its deletion.
func (k kind) rules() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{
			APIGroups:   []string{k.resource.Group},
			APIVersions: []string{k.resource.Version},
			Resources:   []string{k.resource.Resource},
			Scope:       new(admissionregistrationv1.AllScopes), // ExtensionConfigs have no namespace
		},
	}}
}

// validated returns the rules of the validating webhook. They include deletion for kinds whose deletion may
// be rejected, and exclude creation for kinds whose creation is not validated.
func (k kind) validated() []admissionregistrationv1.RuleWithOperations {
	rules := k.rules()
	if k.updated {
		rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
	}
	if k.deletes {
		rules[0].Operations = append(rules[0].Operations, admissionregistrationv1.Delete)
	}
	return rules
}

// touches returns a CEL expression that is true if the object must be validated: on creation, unless only
// updates are validated, and on an update of a field that validation depends on.
func (k kind) touches(mostReplicas int32) string {
	var conditions []string
	if !k.updated {
		conditions = append(conditions, `request.operation == 'CREATE'`)
	}
	if k.deletes {
		conditions = append(conditions, `request.operation == 'DELETE'`)
	}
	for _, part := range k.touched {
		conditions = append(conditions, "object"+part+" != oldObject"+part)
	}
	if k.wrong != "" {
		conditions = append(conditions, k.wrong)
	}
	if k.scales && mostReplicas > 0 {
		conditions = append(conditions, scalesBeyond(mostReplicas))
	}
	if k.resource.Version == conversion.HubVersion {
		conditions = append(conditions, restored)
	}
	return strings.Join(conditions, " || ")
}
