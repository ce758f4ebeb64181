// Package creation creates and deletes clusters the way a careful user does.
//
// Does: finds a network that is free ([Network]), one command of a host after the other ([Lock]); creates a class that is missing
// ([Install]); applies the objects of a manifest, after the API server has accepted all of them in a dry run, so that a mistake in the
// last one does not leave the others behind ([Apply]); asks for the deletion of a Cluster ([Delete]).
//
// Owns: the field manager "slipway-cli".
//
// Never: waits for a cluster; that is package progress.
//
// Read first: [Apply].
package creation
