package reconciler

// Tests outside of the package use these private names.
type ProvisioningStage = provisioningStage

const (
	ReconciledCondition = reconciledCondition
	SpanProvisioning    = spanProvisioning
)

var (
	ProvisioningStages = provisioningStages
	TraceID            = traceID
	WithMachineTrace   = withMachineTrace
)
