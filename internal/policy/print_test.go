package policy

import (
	"reflect"
	"strings"
	"testing"
)

// Every setting is explained where it is printed, and nothing else is.
func TestCommentsAreOfSettings(t *testing.T) {
	text, err := Default().Print()
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]bool{"apiVersion": true, "kind": true}
	collect(reflect.TypeFor[Configuration](), "", settings)
	for setting := range settings {
		if _, explained := comments()[setting]; !explained {
			t.Errorf("%s has no comment", setting)
		}
	}
	for setting, comment := range comments() {
		if !settings[setting] {
			t.Errorf("%s is no setting", setting)
		}
		for line := range strings.Lines(comment) {
			if !strings.Contains(string(text), "# "+strings.TrimSpace(line)) {
				t.Errorf("%q of %s is not printed:\n%s", line, setting, text)
			}
		}
	}
}

func collect(t reflect.Type, prefix string, out map[string]bool) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" { // the type
			continue
		}
		out[prefix+name] = true
		if field.Type.Kind() == reflect.Struct && field.Type != reflect.TypeFor[Maximum]() {
			collect(field.Type, prefix+name+".", out)
		}
	}
}
