package follow

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Integer is a number of an object that was read from JSON or YAML; 0 where there is none.
func Integer(o *unstructured.Unstructured, path ...string) int {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	switch n := value.(type) {
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	return 0
}

// Truth is a boolean of an object; false where there is none.
func Truth(o *unstructured.Unstructured, path ...string) bool {
	value, _, _ := unstructured.NestedBool(o.Object, path...)
	return value
}

// Holds reports whether a condition of an object is True.
func Holds(o *unstructured.Unstructured, conditionType string) bool {
	return condition(o, conditionType)["status"] == "True"
}

// Message is that of a condition of an object; empty where there is none.
func Message(o *unstructured.Unstructured, conditionType string) string {
	text, _ := condition(o, conditionType)["message"].(string)
	return text
}

func condition(o *unstructured.Unstructured, conditionType string) map[string]any {
	conditions, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "conditions")
	all, _ := conditions.([]any)
	for _, one := range all {
		if c, ok := one.(map[string]any); ok && c["type"] == conditionType {
			return c
		}
	}
	return nil
}
