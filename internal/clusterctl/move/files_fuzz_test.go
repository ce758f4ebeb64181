package move

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FuzzDecode: a file of a directory or backup is refused, or is an object that is the same when it is written and read again.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\ndata: {x: eQ==}\n", "apiVersion: v1\nkind: List\nitems: []\n", "", "kind: 1\n", "a: 1\na: 2\n", "metadata: {labels: {a: 1}}\n",
		"apiVersion: v1\nkind: A\nmetadata: {name: ../../x}\n", "apiVersion: v1\nkind: A\nmetadata: {name: a, ownerReferences: [1]}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := DecodeFile("f", data)
		if err != nil {
			return
		}
		written, err := EncodeFile([]*unstructured.Unstructured{o})
		if err != nil {
			return
		}
		for name, text := range written {
			again, err := DecodeFile(name, text)
			if err != nil {
				t.Fatalf("%q is written as %q: %v", data, text, err)
			}
			if diff := cmp.Diff(o.Object, again.Object); diff != "" {
				t.Errorf("%q is another object when it is read again (-want +got):\n%s", data, diff)
			}
		}
	})
}
