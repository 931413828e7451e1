// Package outside builds and runs a module that has nothing of Caisson but its public packages. What only an internal type would make
// possible does not compile there.
//
// The program is testdata/module. It requires what Caisson does, so that nothing is downloaded.
package outside
