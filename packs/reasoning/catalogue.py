"""The data sets of reasoning-gym that are families here: name, area, what is asked.

Written down so that listing families need not import the library, which takes seconds; a test holds
this list against the library.
"""

from typing import NamedTuple


class DataSet(NamedTuple):
    name: str
    area: str
    asks: str

    @property
    def title(self) -> str:
        return _TITLES.get(self.name, self.name.replace("_", " ").capitalize())


_TITLES = {
    "ab": "A::B",
    "acre": "Abstract causal reasoning",
    "aiw": "Alice in Wonderland",
    "arc_1d": "ARC in one dimension",
    "arc_agi": "ARC",
    "bf": "Brainfuck programs",
    "codeio": "Program output and input",
    "gcd": "Greatest common divisor",
    "gsm_symbolic": "Grade school maths",
    "lcm": "Least common multiple",
    "n_queens": "N queens",
    "puzzle24": "Make 24",
    "rearc": "ARC, generated anew",
    "rubiks_cube": "Rubik's cube",
    "sudoku": "Sudoku",
    "mini_sudoku": "Sudoku 4 × 4",
}

# Data sets of the library that are no family, with the reason.
LEFT_OUT = {
    "composite": "A mixture of other data sets, without tasks of its own.",
}

_LINES = """
ab | algorithmic | Rewrite a row of A#, #A, B#, #B tokens until no rule fits.
acre | induction | Tell from trials which objects switch a detector on.
advanced_geometry | geometry | Angles, orthocentres and incircles of triangles from coordinates.
aiw | logic | Count sisters, brothers, friends or colleagues in a short story.
arc_1d | arc | Find the rule that turns one row of digits into another.
arc_agi | arc | Find the rule that turns one grid into another, from examples.
base_conversion | algorithmic | Write a number in another base.
basic_arithmetic | arithmetic | Evaluate an expression of whole numbers.
bf | code | Say what a short Brainfuck program prints.
binary_alternation | algorithmic | Fewest swaps that make a row of bits alternate.
binary_matrix | algorithmic | Distance of each cell to the nearest 0.
bitwise_arithmetic | arithmetic | Evaluate hexadecimal arithmetic with shifts.
boxnet | games | Plan moves of agents that bring boxes to their targets.
caesar_cipher | algorithmic | Decipher a shifted text.
calendar_arithmetic | arithmetic | Weekdays, business days and recurring dates.
chain_sum | arithmetic | Add and subtract a chain of numbers.
circuit_logic | logic | Evaluate a drawn logic circuit.
codeio | code | Work out a program's output, or an input that gives it.
coin_flip | probability | Probability of a number of heads.
color_cube_rotation | cognition | Follow the colours of a cube that is turned.
complex_arithmetic | algebra | Add, subtract, multiply and divide complex numbers.
count_bits | arithmetic | Count the ones in a number's binary form.
count_primes | algorithmic | Count primes in an interval.
countdown | games | Reach a target with given numbers, each used once.
course_schedule | graphs | Say whether all courses can be finished.
cryptarithm | algorithmic | Find the digits behind the letters of a sum.
decimal_arithmetic | arithmetic | Evaluate expressions of decimals to a given precision.
decimal_chain_sum | arithmetic | Add and subtract a chain of decimals.
dice | arithmetic | Probability that a throw of several dice reaches a sum.
emoji_mystery | games | Read a sentence hidden in the variation selectors of an emoji.
family_relationships | graphs | Name how two members of a family are related.
figlet_font | cognition | Read a word drawn in letters of characters.
fraction_simplification | arithmetic | Reduce a fraction.
futoshiki | games | Fill a Latin square under inequalities.
game_of_life | algorithmic | Simulate Conway's game of life.
game_of_life_halting | algorithmic | Say whether a game of life comes to rest.
gcd | arithmetic | Greatest common divisor of several numbers.
graph_color | algorithmic | Colour a graph so that neighbours differ.
group_anagrams | algorithmic | Group words that are anagrams.
gsm_symbolic | arithmetic | Word problems with drawn numbers and names.
intermediate_integration | algebra | Integrate by substitution or by parts.
isomorphic_strings | algorithmic | Say whether letters of one text map onto those of another.
jugs | algorithmic | Measure an amount with jugs.
kakurasu | games | Mark cells so that weighted sums of rows and columns fit.
knight_swap | games | Swap white and black knights on a small board.
knights_knaves | logic | Tell who lies and who does not.
largest_island | graphs | Area of the largest island of a grid.
lcm | arithmetic | Least common multiple of several numbers.
leg_counting | arithmetic | Count the legs of many animals.
letter_counting | algorithmic | Count a letter in a text.
letter_jumble | algorithmic | Unscramble the letters of words.
list_functions | induction | Find the rule that turns one list into another.
mahjong_puzzle | games | Follow a simplified game of mahjong.
manipulate_matrix | algorithmic | Rotate, flip, crop and map a matrix step by step.
maze | games | Length of the shortest way through a maze.
mini_sudoku | games | Solve a sudoku of 4 by 4.
modulo_grid | cognition | Find the rule behind a grid and complete it.
n_queens | games | Place the missing queens.
needle_haystack | cognition | Find one statement among many.
number_filtering | algorithmic | Keep or drop the numbers that a condition names.
number_format | arithmetic | Largest of numbers written in different formats.
number_sequence | cognition | Continue a sequence of numbers.
number_sorting | algorithmic | Sort numbers up or down.
palindrome_generation | algorithmic | Make a palindrome of given letters.
palindrome_partitioning | algorithmic | All ways to cut a text into palindromes.
path_star | graphs | The way from the middle of a star to a goal.
polynomial_equations | algebra | Real solutions of a polynomial equation.
polynomial_multiplication | algebra | Multiply polynomials.
pool_matrix | algorithmic | Pool a matrix by maximum or mean.
power_function | arithmetic | Powers of numbers to three figures.
prime_factorization | arithmetic | Factor a number into primes.
products | arithmetic | Multiply whole numbers.
propositional_logic | logic | Draw a conclusion from premises.
puzzle24 | games | Make 24 of four numbers.
quantum_lock | graphs | Shortest button sequence that opens a lock.
ransom_note | algorithmic | Say whether one text can be cut out of another.
rearc | arc | Find the rule behind grids of generated ARC tasks.
rectangle_count | cognition | Count rectangles drawn in characters.
rotate_matrix | algorithmic | Turn a square matrix by quarter turns.
rotten_oranges | algorithmic | Steps until all oranges of a grid are rotten.
rubiks_cube | cognition | Solve a scrambled cube.
rush_hour | games | Drive the red car out of a jam.
self_reference | logic | Count consistent answers of statements about themselves.
sentence_reordering | algorithmic | Put the words of a sentence into order.
shortest_path | graphs | Shortest way through a grid.
simple_equations | algebra | Solve a linear equation.
simple_geometry | geometry | Missing angle of a polygon.
simple_integration | algebra | Integrate a polynomial.
sokoban | games | Push boxes onto their goals.
spell_backward | algorithmic | Spell a word backward.
spiral_matrix | algorithmic | Read a matrix in a spiral.
string_insertion | algorithmic | Insert letters after patterns.
string_manipulation | algorithmic | Apply rules to a text until it stays or repeats.
string_splitting | algorithmic | Count machines and parts after rules were applied.
string_synthesis | algorithmic | Count blocks after rules were applied.
sudoku | games | Solve a sudoku of 9 by 9.
survo | games | Fill a grid so that the sums of rows and columns fit.
syllogism | logic | Say whether a conclusion follows.
time_intervals | arithmetic | Time between two moments in many formats.
tower_of_hanoi | games | Move a tower from peg to peg.
tsumego | games | Find the move that captures stones on a Go board.
word_ladder | algorithmic | Change one word into another, letter by letter.
word_sequence_reversal | algorithmic | Reverse a list of words.
word_sorting | algorithmic | Sort words by their letters' codes.
zebra_puzzles | logic | Find out who lives where from clues.
"""

DATA_SETS = tuple(DataSet(*line.split(" | ")) for line in _LINES.strip().splitlines())
