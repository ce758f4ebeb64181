package patch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/redact"
	"github.com/slipwayhq/slipway/internal/topology/variables"
)

const builtin = runtimehooksv1.BuiltinsName

// maxQuotedText is the maximum length of a text from an extension in an error, in bytes.
const maxQuotedText = 200

// generate applies the patches of an extension (the hook GeneratePatches), or returns the request for them if their
// response is not known yet. [Program.Apply] calls it in the order of the patches.
func (r *run) generate(patch *compiledPatch) (*ExtensionRequest, error) {
	extension := patch.external.GeneratePatchesExtension
	if extension == "" {
		return nil, nil
	}
	sent := r.sentFor(patch.name)
	request := &runtimehooksv1.GeneratePatchesRequest{Variables: list(r.globals, sent)}
	request.Settings = patch.external.Settings
	for i, item := range r.items {
		object, err := r.encode(i)
		if err != nil {
			return nil, err
		}
		request.Items = append(request.Items, runtimehooksv1.GeneratePatchesRequestItem{
			UID: item.UID, HolderReference: item.Holder, Object: object, Variables: list(item.Variables, sent),
		})
	}
	question, err := newRequest(patch.name, extension, request)
	if err != nil {
		return nil, err
	}
	answer, known := r.responses[question.Key]
	if !known {
		return question, nil
	}
	response, ok := answer.(*runtimehooksv1.GeneratePatchesResponse)
	if !ok {
		return nil, fault.New(fault.Bug, ReasonInvalidResponse, "The response for %s is a %T", question, answer)
	}
	return nil, r.applyResponse(patch, response)
}

// applyResponse applies the patches of a response in their order.
func (r *run) applyResponse(patch *compiledPatch, response *runtimehooksv1.GeneratePatchesResponse) error {
	index := make(map[types.UID]int, len(r.items))
	for i, item := range r.items {
		index[item.UID] = i
	}
	for n, answer := range response.Items {
		i, known := index[answer.UID]
		if !known {
			return invalidResponse(patch, "item %d of its response has uid %q, which no template in the request has", n, redact.Clip(string(answer.UID), maxQuotedText))
		}
		if err := r.takeOne(i, answer); err != nil {
			return invalidResponse(patch, "%s, item %d of its response: %v", r.items[i], n, err)
		}
	}
	return nil
}

// Accepts reports whether a response can be applied to the templates in the request. The topology controller passes it
// to the client of package hook, which caches only accepted responses.
func (q ExtensionRequest) Accepts(answer any) bool {
	request, generates := q.Request.(*runtimehooksv1.GeneratePatchesRequest)
	response, ok := answer.(*runtimehooksv1.GeneratePatchesResponse)
	if !generates || !ok {
		return ok == generates
	}
	r := &run{}
	for _, item := range request.Items {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(item.Object.Raw); err != nil {
			return false
		}
		r.items, r.objects = append(r.items, Item{UID: item.UID, Object: object}), append(r.objects, object)
	}
	return r.applyResponse(&compiledPatch{external: &clusterv1.ExternalPatchDefinition{}}, response) == nil
}

// invalidResponse returns the fault of an extension whose response cannot be applied.
func invalidResponse(patch *compiledPatch, format string, args ...any) error {
	return fault.New(fault.Invalid, ReasonInvalidResponse, "Extension %s of patch %s: %s; correct the extension",
		patch.external.GeneratePatchesExtension, patch.name, fmt.Sprintf(format, args...))
}

func (r *run) takeOne(i int, answer runtimehooksv1.GeneratePatchesResponseItem) error {
	if isEmptyPatch(answer.Patch) {
		return nil
	}
	before, err := r.encode(i)
	if err != nil {
		return err
	}
	after, err := ApplyPatch(answer.PatchType, before.Raw, answer.Patch)
	if err != nil {
		return err
	}
	var was, is map[string]any
	if err := utiljson.Unmarshal(before.Raw, &was); err != nil {
		return err
	}
	if err := utiljson.Unmarshal(after, &is); err != nil {
		return fmt.Errorf("the result of the patch is not an object: %w", err)
	}
	if path := immutableDifference(was, is, nil); path != nil {
		return fmt.Errorf("the patch changes %s, but patches may change only /spec/template/spec, labels and annotations", redact.Clip(path.String(), maxQuotedText))
	}
	r.objects[i].Object = is
	return nil
}

// validate returns the requests to extensions that validate topologies (the hook ValidateTopology) and have not
// accepted this one yet. It runs after all patches. [Program.Apply] calls it.
func (r *run) validate() ([]ExtensionRequest, error) {
	var questions []ExtensionRequest
	for p := range r.patches {
		patch := &r.patches[p]
		if patch.external == nil || patch.external.ValidateTopologyExtension == "" {
			continue
		}
		sent := r.sentFor(patch.name)
		request := &runtimehooksv1.ValidateTopologyRequest{Variables: list(r.globals, sent)}
		request.Settings = patch.external.Settings
		for i, item := range r.items {
			object, err := r.encode(i)
			if err != nil {
				return nil, err
			}
			request.Items = append(request.Items, &runtimehooksv1.ValidateTopologyRequestItem{
				HolderReference: item.Holder, Object: object, Variables: list(item.Variables, sent),
			})
		}
		question, err := newRequest(patch.name, patch.external.ValidateTopologyExtension, request)
		if err != nil {
			return nil, err
		}
		if _, accepted := r.responses[question.Key]; !accepted {
			questions = append(questions, *question)
		}
	}
	return questions, nil
}

func (r *run) encode(i int) (runtime.RawExtension, error) {
	raw, err := r.objects[i].MarshalJSON()
	if err != nil {
		return runtime.RawExtension{}, fault.New(fault.Bug, reasonPatchFailed, "%s cannot be encoded for an extension", r.items[i]).From(err)
	}
	return runtime.RawExtension{Raw: bytes.TrimSpace(raw)}, nil
}

// newRequest returns a request with its key: the hash of extension and request. Package hook and the topology
// controller find the response by the key.
func newRequest(patch, extension string, request runtime.Object) (*ExtensionRequest, error) {
	raw, err := json.Marshal(request)
	if err != nil {
		return nil, fault.New(fault.Bug, reasonPatchFailed, "The request to extension %s cannot be encoded", extension).From(err)
	}
	sum := sha256.Sum256(append([]byte(fmt.Sprintf("%s/%T/", extension, request)), raw...))
	return &ExtensionRequest{Patch: patch, Extension: extension, Request: request, Key: hex.EncodeToString(sum[:])}, nil
}

// sentFor returns the variables that are sent to an extension: variables defined by the class or by the patch itself.
func (r *run) sentFor(patch string) map[string]bool {
	sent := map[string]bool{builtin: true}
	for _, v := range r.class.Status.Variables {
		for _, definition := range v.Definitions {
			if definition.From == clusterv1.VariableDefinitionFromInline || definition.From == patch {
				sent[v.Name] = true
			}
		}
	}
	return sent
}

// list returns the variables that are sent, sorted by name. The key of the request must be the same in each
// reconciliation.
func list(values variables.Values, sent map[string]bool) []runtimehooksv1.Variable {
	var out []runtimehooksv1.Variable
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if sent[name] {
			out = append(out, runtimehooksv1.Variable{Name: name, Value: values[name]})
		}
	}
	return out
}
