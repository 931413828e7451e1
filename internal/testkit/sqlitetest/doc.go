// Package sqlitetest helps tests of what lives in a SQLite file.
//
// All that one process opens by one path shares the file. [Apart] gives a file another name, so that a test has two owners as two processes
// would be.
package sqlitetest
