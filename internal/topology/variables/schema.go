package variables

import (
	"encoding/json"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// propsOf converts the schema of a variable to the type of the API server's libraries, without x-metadata, which they
// do not have. It is the first step of compiling and of validating a schema.
func propsOf(s clusterv1.JSONSchemaProps) (*apiextensions.JSONSchemaProps, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be encoded: %w", err)
	}
	versioned, out := &apiextensionsv1.JSONSchemaProps{}, &apiextensions.JSONSchemaProps{}
	if err := json.Unmarshal(raw, versioned); err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(versioned, out, nil); err != nil {
		return nil, fmt.Errorf("the schema cannot be used: %w", err)
	}
	return out, nil
}

// encode returns a value as JSON, for the values in a topology.
func encode(value any) (apiextensionsv1.JSON, error) {
	raw, err := json.Marshal(value)
	return apiextensionsv1.JSON{Raw: raw}, err
}
