package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Objects reads the objects in YAML or JSON documents, and the items of lists. Every object must have an apiVersion, a
// kind and a name. Commands call it for files of users and of providers, the ClusterResourceSet controller for the data
// of ConfigMaps and Secrets, and packages with embedded manifests for these.
func Objects(data []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for n := 1; ; n++ {
		raw, content := runtime.RawExtension{}, map[string]any(nil)
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err == nil && len(raw.Raw) > 0 {
			err = json.Unmarshal(raw.Raw, &content) // preserves integers
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if len(content) == 0 {
			continue
		}
		if out, err = appendObjects(out, content); err != nil {
			return nil, fmt.Errorf("document %d %w", n, err)
		}
	}
}

// appendObjects appends an object, or the items of a list.
func appendObjects(out []*unstructured.Unstructured, content any) (_ []*unstructured.Unstructured, err error) {
	object, _ := content.(map[string]any)
	u := &unstructured.Unstructured{Object: object}
	items, isList := object["items"].([]any)
	switch {
	case isList && strings.HasSuffix(u.GetKind(), "List"):
		for i, item := range items {
			if out, err = appendObjects(out, item); err != nil {
				return nil, fmt.Errorf("item %d %w", i+1, err)
			}
		}
		return out, nil
	case u.GetKind() == "":
		return nil, errors.New("has no kind")
	case u.GetAPIVersion() == "" || u.GetName() == "":
		return nil, fmt.Errorf("of kind %q has no apiVersion or no metadata.name", u.GetKind())
	}
	return append(out, u), nil
}

// Documents splits a stream of YAML documents, and preserves their text. A document may consist of comments only.
// `slipway convert` preserves comments with it, and simulated Machines read kubeadm files with it.
func Documents(data []byte) ([][]byte, error) {
	var out [][]byte
	for r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", len(out)+1, err)
		}
		out = append(out, bytes.TrimPrefix(document, []byte("---\n")))
	}
}

// YAML encodes objects as a multi-document YAML stream, for output of commands.
func YAML(objects []*unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	for i, o := range objects {
		doc, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(doc)
	}
	return out.Bytes(), nil
}
