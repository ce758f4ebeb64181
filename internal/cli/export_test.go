package cli

// Tests outside of the package use these private names.
const (
	ExitError       = exitError
	ExitInvalid     = exitInvalid
	ExitNotFound    = exitNotFound
	ExitOK          = exitOK
	ExitUnreachable = exitUnreachable
)

var (
	Clusterctl        = newClusterctlRoot
	CompletionCommand = completionCommand
	Document          = commandReference
	GenerateCommand   = generateCommand
	Hint              = updateHint
	Root              = newSlipwayRoot
	VersionCommand    = versionCommand
)
