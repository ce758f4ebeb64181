// Package openapi serves the OpenAPI document of the Runtime SDK hooks, at paths below /runtime-sdk/ of the webhook
// server ([Handler]). It generates the document from the hook catalog (sdk/hooks/openapi) ([Document]), with the
// descriptions of fields that `make crds` collects from the Go types into generated/, and renders it as one HTML page
// without scripts.
package openapi

//go:generate sh -c "cd ../../.. && go run ./hack/openapi"
