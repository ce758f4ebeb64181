// Command fleet measures how many simulated clusters one Slipway carries, and what each costs.
//
//	go run ./test/bench/fleet -slipway bin/slipway [-clusters 1,10,100,300,1000] [-out FILE] [-manifest FILE]
//	    [-idle TIME] [-changes=false] [-workers N] [-patience TIME] [-profiles FOLDER]
//
// Does: for each number of clusters starts a fresh management cluster and a manager as two processes (package pair),
// makes the clusters all at once from one manifest, waits until all are Available and settled, watches them idle, changes their class (where
// they have one: a label, then a template), scales a MachineDeployment of the first one from 1 to 50 and on to the number of workers, and deletes everything. While the host
// gives the processors to others it waits before each of these but the deletion. Prints a table and writes JSON; with
// several numbers also a drawing (.svg).
//
// Owns: the temporary installations that it makes.
//
// Never: fails because a goal is missed. It fails when something could not be measured.
//
// Read first: run.go. docs/bench/README.md says what each figure means.
package main
