// Words of table and column names, beside those of the other lists.

/** Short forms that are common in column names, and their words. */
export const SHORT_FORMS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    nbr: "number",
    num: "number",
    qty: "quantity",
    amt: "amount",
    desc: "description",
    descr: "description",
    addr: "address",
    dob: "date of birth",
    avg: "average",
    max: "maximum",
    min: "minimum",
    pct: "percentage",
    perc: "percentage",
    dept: "department",
    emp: "employee",
    mgr: "manager",
    cust: "customer",
    prod: "product",
    tel: "telephone",
    yr: "year",
    lat: "latitude",
    lng: "longitude",
    lon: "longitude",
    fname: "first name",
    lname: "last name",
    mname: "middle name",
    firstname: "first name",
    lastname: "last name",
    fullname: "full name",
    dest: "destination",
    src: "source",
    acct: "account",
    govt: "government",
    org: "organization",
    cnt: "count",
    dt: "date",
    ts: "time",
    surfacearea: "surface area",
    abbrev: "abbreviation",
    indep: "independence",
  }),
);

/** Words of column names that the lexicon, which has nouns of other databases, does not have. */
export const COMMON = `
about account active actual address adult after age air all amount and annual area arrival at author authors available
average avenue average award awarded back bank base before best birth birthday birthplace black block board body book
born box branch build by capacity car card care case category cause center change channel charge check child city class
client close code color comment common company complete contact content cost count country course court created credit
current custom customer daily data date day death default delivery department departure description destination detail
details director discount display distance district document dog due duration early education email employee end event
ever expected factory family fax female field file final finish first flag flight floor food foot for founded free
from full game gender general genre gold government grade grand gross group growth half hand head health height high
highest hired home hometown host hotel hour hours house image in income index indicator industry initial injured inner
insurance inventory invoice is item job joined killed kind label language large last late launch law lead league left
length letter level license life line list local location long low lowest mail main make maker male manager manufacturer
market married match max maximum media medical member message method middle min minimum minute mobile model month
monthly mother mountain movie music name nation national nationality net new next nickname night nominated note notes
number of official old on open opened operating order origin other out outer over owner page paid parent part party pay
payment people per percent percentage period permanent person pet phone photo picture piece place plan player point
points policy population position post postal power previous price primary problem process product production profile
project property province public purchase quality quantity quarter race rank rate rating ratio read real received record
region registered registration related release released remark rent rental replacement report required result results
return revenue review right road role room route row salary sale sales sample schedule school score season seat second
section sell seller sent series service set sex share shelf ship shipping shop short show shown side sign silver single
site size small song source space special speed sport staff stage stand start state station status stay step stock store
story street student style sub subject supplier surface surname system table target tax teacher team ticket time title
to top total town track training transaction transfer travel treatment trip type unit update updated upper use user
username valid value vehicle version video view visit visitor visitors vote votes wage wall water website week weekly
weight white wife win wind winner with word work worker working year yearly years zip zone`;

/** Nouns for people that practice worlds leave to the bundled databases. */
export const MORE_PERSONS =
  "person people student employee singer customer teacher user member professional owner visitor guest patient doctor nurse instructor staff manager conductor player driver artist author actor director singer client resident citizen tourist participant voter friend wrestler swimmer gymnast pilot physician lecturer advisor coach candidate contestant individual child man woman parent dancer worker editor composer musician journalist entrepreneur follower highschooler inhabitant";

/** Nouns for places likewise. */
export const MORE_PLACES =
  "airport stadium shop store museum hotel city station school university college building park restaurant branch apartment property address store library mall cinema theatre mountain lake river county district theme attraction office department";

/** Quantities that are attributes or things elsewhere. */
export const MORE_QUANTITIES =
  "age amount area average balance budget capacity count cost distance duration earnings elevation experience height hours income killed injured length mileage minutes months number percentage percent pixels points population power price quantity rating ratio revenue salary sales score seconds share size speed stock surface temperature time total turnover value volume votes wage weight width years credits units displacement acceleration expectancy attendance";

/** Words whose numbers are codes. */
export const MORE_CODED =
  "major minor section class room zone ward lane gate channel group type kind category status gender sex department district advisor account batch block slot capital";

/** Acronyms that are written in capitals wherever they stand. */
export const ACRONYMS = new Set(
  "gnp gdp mpg url imdb isbn issn vat tv dvd cd dna usa uk eu pe gpa gps cpu ram hp ip iso sku kpi roi id".split(" "),
);

/** Irregular singulars, and those that the rules would get wrong. */
export const SINGULARS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    people: "person",
    children: "child",
    men: "man",
    women: "woman",
    feet: "foot",
    mice: "mouse",
    wives: "wife",
    leaves: "leaf",
    lives: "life",
    shelves: "shelf",
    movies: "movie",
    cookies: "cookie",
    calories: "calorie",
    ties: "tie",
    shoes: "shoe",
    buses: "bus",
    statuses: "status",
    gases: "gas",
    viruses: "virus",
    bonuses: "bonus",
    campuses: "campus",
    indices: "index",
    matrices: "matrix",
    vertices: "vertex",
    caches: "cache",
  }),
);

/** Words that end in s in the singular too. */
export const STAY = new Set("series species news status bus gas canvas atlas lens is has was class".split(" "));

/** Nouns of events whose participle names a date: `date_arrived` is an arrival date. */
export const EVENT_NOUNS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    adopted: "adoption",
    arrived: "arrival",
    born: "birth",
    built: "construction",
    completed: "completion",
    created: "creation",
    delivered: "delivery",
    departed: "departure",
    died: "death",
    ended: "end",
    expired: "expiry",
    founded: "founding",
    graduated: "graduation",
    hired: "hire",
    joined: "joining",
    left: "leaving",
    modified: "modification",
    opened: "opening",
    ordered: "order",
    paid: "payment",
    posted: "post",
    published: "publication",
    purchased: "purchase",
    registered: "registration",
    released: "release",
    retired: "retirement",
    sent: "sending",
    shipped: "shipping",
    sold: "sale",
    started: "start",
    updated: "update",
  }),
);

/** Who does what a participle says: `directed_by` is a director. */
export const AGENTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    approved: "approver",
    assigned: "assignee",
    built: "builder",
    composed: "composer",
    created: "creator",
    designed: "designer",
    directed: "director",
    edited: "editor",
    funded: "funder",
    hosted: "host",
    led: "leader",
    made: "maker",
    managed: "manager",
    organized: "organizer",
    owned: "owner",
    played: "player",
    produced: "producer",
    published: "publisher",
    sold: "seller",
    sponsored: "sponsor",
    sung: "singer",
    supplied: "supplier",
    taught: "teacher",
    written: "writer",
  }),
);
