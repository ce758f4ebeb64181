package template

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/conversion"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manifest"
)

// reasonManifest is the reason when a manifest cannot be converted; Invalid.
const reasonManifest = "InvalidManifest"

// ConvertResult is a converted manifest.
type ConvertResult struct {
	YAML []byte
	// Converted and Unchanged count objects.
	Converted, Unchanged int
	// Notes list objects that could not be converted and were left unchanged.
	Notes []string
}

// ConvertManifest converts the documents of a manifest, for "slipway convert".
func ConvertManifest(data []byte, version string) (ConvertResult, error) {
	if version != clusterv1.GroupVersion.Version {
		return ConvertResult{}, fault.New(fault.Invalid, reasonManifest, "objects cannot be converted to version %q; use %s", version, clusterv1.GroupVersion.Version)
	}
	converter, err := conversion.New(nil)
	if err != nil {
		return ConvertResult{}, err
	}
	r := ConvertResult{}
	documents, err := manifest.Documents(data)
	if err != nil {
		return ConvertResult{}, malformed(err)
	}
	var converted [][]byte
	for n, document := range documents {
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		if document, err = r.document(converter, document, n+1); err != nil {
			return ConvertResult{}, err
		}
		converted = append(converted, append(bytes.TrimRight(document, "\n"), '\n'))
	}
	r.YAML = bytes.Join(converted, []byte("---\n"))
	return r, nil
}

func malformed(err error) error {
	return fault.New(fault.Invalid, reasonManifest, "the manifest is invalid: %v; if it is a template, replace its variables first with \"slipway generate yaml\"", err).From(err)
}

// document converts one document if necessary.
func (r *ConvertResult) document(converter *conversion.Converter, document []byte, n int) ([]byte, error) {
	head := unstructured.Unstructured{}
	if err := yaml.Unmarshal(document, &head.Object); err != nil {
		return nil, malformed(fmt.Errorf("document %d: %w", n, err))
	}
	if len(head.Object) == 0 {
		return document, nil // only comments
	}
	kind := head.GroupVersionKind()
	if kind.Group != clusterv1.GroupVersion.Group || kind.Version == clusterv1.GroupVersion.Version {
		r.Unchanged++
		return document, nil
	}
	if !converter.Scheme().Recognizes(kind) || !converter.Scheme().Recognizes(clusterv1.GroupVersion.WithKind(kind.Kind)) {
		r.Unchanged++
		r.Notes = append(r.Notes, fmt.Sprintf("Document %d, %s %s, has version %s, which cannot be converted; it is unchanged.", n, kind.Kind, head.GetName(), kind.Version))
		return document, nil
	}
	out, err := object(converter, document, kind)
	if err != nil {
		return nil, fault.New(fault.Invalid, reasonManifest, "document %d, %s %s, cannot be converted: %v", n, kind.Kind, head.GetName(), err).From(err)
	}
	r.Converted++
	return out, nil
}

func object(converter *conversion.Converter, document []byte, kind schema.GroupVersionKind) ([]byte, error) {
	spoke, err := converter.Scheme().New(kind)
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(document, spoke); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "error unmarshaling JSON: while decoding JSON: ")) // remove the prefix of the library
	}
	hub, err := converter.Convert(spoke, clusterv1.GroupVersion.Version)
	if err != nil {
		return nil, err
	}
	hub.GetObjectKind().SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind.Kind))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(hub)
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	if status, ok := content["status"].(map[string]any); ok && len(status) == 0 {
		delete(content, "status")
	}
	return yaml.Marshal(content)
}
