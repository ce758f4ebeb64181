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

// Paths that the handlers are served at.
const (
	mutatePath   = "/mutate"
	validatePath = "/validate"
	convertPath  = "/convert"
)

// callTimeoutSeconds is how long the API server waits for an answer: as long as it may. On a busy host, each call of a fleet that is applied at once
// takes seconds.
const callTimeoutSeconds = 30

// Address says where the API server finds the webhooks, at a URL or through a Service, and whose they are.
type Address struct {
	// URL is for an API server on the same host: scheme, host and port, for example https://127.0.0.1:9443.
	URL string

	// Service is for an API server of a cluster that the manager runs in. Ignored when URL is set.
	Service Service

	// Sets are the providers whose webhooks are there; nil: all.
	Sets []providerset.Set

	// MostReplicas is how many replicas an object may be scaled to without a call; 0: any number.
	MostReplicas int32
}

// Service is a Kubernetes Service in front of the managers.
type Service struct {
	Namespace, Name string
	Port            int32 // 443 when zero
}

// names returns the host names and IPs that the serving certificate must be for.
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

// admissionClient returns the address of one path for webhook configurations.
func (a Address) admissionClient(path string, ca []byte) admissionregistrationv1.WebhookClientConfig {
	if a.URL != "" {
		return admissionregistrationv1.WebhookClientConfig{URL: new(strings.TrimSuffix(a.URL, "/") + path), CABundle: ca}
	}
	return admissionregistrationv1.WebhookClientConfig{CABundle: ca, Service: &admissionregistrationv1.ServiceReference{
		Namespace: a.Service.Namespace, Name: a.Service.Name, Path: new(path), Port: new(a.Service.port()),
	}}
}

// conversionClient returns the address of the conversion for CRDs.
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

// configurations returns those of each provider, without empty ones: a provider of others, or another process of ours,
// may serve the next one.
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

// mutating returns the configuration of defaulting.
func mutating(set providerset.Set, address Address, ca []byte) *admissionregistrationv1.MutatingWebhookConfiguration {
	config := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: set.Defaulting()}}
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

// validating returns the configuration of validation.
func validating(set providerset.Set, address Address, ca []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: set.Validation()}}
	config.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"))
	for _, k := range kindsOf(set) {
		config.Webhooks = append(config.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name:                    "validate." + k.name(),
			ClientConfig:            address.admissionClient(validatePath, ca),
			Rules:                   k.validated(),
			MatchConditions:         []admissionregistrationv1.MatchCondition{{Name: "touches-a-rule", Expression: k.touches(address.MostReplicas)}},
			MatchPolicy:             new(admissionregistrationv1.Equivalent),
			FailurePolicy:           new(admissionregistrationv1.Fail),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          new(int32(callTimeoutSeconds)),
			AdmissionReviewVersions: []string{"v1"},
		})
		if k.scalesWrong(address.MostReplicas) != "" {
			config.Webhooks = append(config.Webhooks, k.scale(address, ca))
		}
	}
	return config
}

// scaleSubresource is how `kubectl scale` and autoscalers change replicas.
const scaleSubresource = "scale"

// scale is the webhook of the scale subresource.
func (k kind) scale(address Address, ca []byte) admissionregistrationv1.ValidatingWebhook {
	rules := k.rules()
	rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
	rules[0].Resources = []string{k.resource.Resource + "/" + scaleSubresource}
	return admissionregistrationv1.ValidatingWebhook{
		Name:         "scale." + k.name(),
		ClientConfig: address.admissionClient(validatePath, ca),
		Rules:        rules,
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "scales-wrong", Expression: k.scalesWrong(address.MostReplicas),
		}},
		MatchPolicy:             new(admissionregistrationv1.Equivalent),
		FailurePolicy:           new(admissionregistrationv1.Fail),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(int32(callTimeoutSeconds)),
		AdmissionReviewVersions: []string{"v1"},
	}
}

// scalesWrong is true for what the rules may refuse of the scale subresource; empty: there is nothing.
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

// scalesBeyond is true for an update that asks for more replicas than before, and for more than so many.
func scalesBeyond(most int32) string {
	const replicas = `.?spec.?replicas.orValue(0)`
	return fmt.Sprintf("object%s > %d && object%s > oldObject%s", replicas, most, replicas, replicas)
}

// name is the full name of a webhook's resource, for example machines.cluster.x-k8s.io.
func (k kind) name() string { return k.resource.Resource + "." + k.resource.Group }

// rules names the resource itself: not its status, and not its deletion.
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

// validated are the rules of validation: also those of deletion, where that may be refused, and of updates alone, where
// nothing else may be.
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

// touches is true for a new object, unless the rules are about updates alone, and for an update of a part that the rules look at.
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
