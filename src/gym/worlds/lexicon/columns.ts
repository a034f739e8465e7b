// Nouns for columns (quantities, attributes, dated events) and adjectives that precede nouns.

/** Quantities that may be summed over rows. */
export const SUMMABLE_QUANTITIES = `
absences accidents acreage actions advances allowance alterations amount appearances applicants applications arrests
arrivals assists attempts attendance awards backlog balance bandwidth bedrooms bids blocks bonus books
bookings boxes branches breakages budget bushels calls calories capacity carats cargo cases cash casualties catches charge
chairs citations claims clicks clients coins collections commission complaints consumption contributions copies
cost crates credits crew customers cuts damage debt deductions defects deliveries departures deposits detours discount
distance documents donations doors downloads drawers duration eggs emissions employees entries
errors events exhibits expenditure expenses exports failures fatalities faults fee fees files fine fines floors followers
footage freight funding gain gallons games goals grants guests harvest headcount hits homicides households
imports incidents income infections inhabitants injuries inquiries installments interruptions inventory investment
invoices issues items jobs journeys layers leaves lessons licenses likes listeners loads
loans loss losses lunches luggage mailings matches meals medals members mentions merchandise messages mileage
mishaps mistakes notes offers orders outlay output outputs overtime pages parcels participants passengers
patents payload payments payout payroll penalties pensions petals photos pieces plays points portions postage posts
premium prizes production profit purchases quantity quota readers rebate rebates receipts recruits
refunds rejections rent repairs repeats replies requests residents revenue rewards riders rides rooms
runs scrap screenings seats seedlings sessions shares shelves shifts shipments shots
signatures slots spectators spending stamps steps stock storage strikes subscribers subsidies surplus takeoffs
tax tickets tips tolls tonnage tons towels traffic trips troops turnover upkeep usage vacancies vehicles
victims views violations visitors visits votes waste wins withdrawals workers yards yield`;

/** Quantities that describe a property of a row; their sum is meaningless. */
export const LEVEL_QUANTITIES = `
ability abrasion accuracy acidity adhesion affinity agility alertness altitude aptitude area aroma authority
bitterness brightness buoyancy cadence charisma circumference clarity coherence
cohesion comfort complexity compression concentration confidence consistency contrast courage courtesy coverage crispness
curvature daring darkness deflection density deviation diameter difficulty diligence discipline displacement
drag durability eccentricity efficiency effort elasticity elegance elevation endurance energy enthusiasm
familiarity fatigue ferocity fertility fineness firmness fitness flexibility fluency focus force fragility freshness
frequency friction girth glossiness gravity hardness harmony heat honesty humidity hygiene importance
inclination index inertia influence insulation integrity intelligence intensity intimacy kindness latency latitude
lifespan likelihood longevity longitude loyalty luminosity lustre magnitude margin maturity mobility moisture
momentum morale motivation noise nutrition obedience odor opacity originality patience percentage percentile
performance permeability persistence pitch_angle plausibility polarity popularity porosity potency power precision
pressure prestige priority probability proficiency prominence punctuality purity quality quotient radiance radius
rainfall range rank ranking rate rating ratio readiness reflectance relevance reliability reputation resilience
resistance resonance richness rigidity risk roughness rotation salinity satisfaction saturation sensitivity
severity sharpness similarity simplicity skill slope smoothness softness stability stamina stealth steepness
stiffness strain strength stress stretch suitability sweetness swiftness tempo temperature tenacity tension
texture_score thickness threshold thrust tightness tolerance torque toughness toxicity traction transparency turbulence
uncertainty urgency usability validity variance velocity versatility vibration viscosity visibility vitality voltage
volatility warmth wealth whiteness willpower wisdom wingspan`;

/**
 * Quantities with their own comparatives. Fields per line:
 * noun, lowest, highest, decimals | largest, smallest | above, below | unit (may be empty) | + if a sum makes sense.
 */
export const SPOKEN_QUANTITIES = `
age 1 95 0 | oldest, youngest | older than, younger than | years
age 1 400 0 | oldest, newest | older than, newer than |
weight 1 900 1 | heaviest, lightest | heavier than, lighter than | kilograms
mass 5 5000 0 | heaviest, lightest | heavier than, lighter than | grams
height 1 320 1 | tallest, shortest | taller than, shorter than | meters
stature 120 215 0 | tallest, shortest | taller than, shorter than | centimeters
elevation 1 6000 0 | highest, lowest | higher than, lower than | meters
altitude 20 9000 0 | highest, lowest | higher than, lower than | feet
length 2 900 1 | longest, shortest | longer than, shorter than | meters
length 1 240 0 | longest, shortest | longer than, shorter than | pages
duration 1 300 0 | longest, shortest | longer than, shorter than | minutes | +
runtime 1 600 0 | longest, shortest | longer than, shorter than | seconds | +
running_time 40 260 0 | longest, shortest | longer than, shorter than | minutes | +
width 1 90 1 | widest, narrowest | wider than, narrower than | inches
breadth 1 90 1 | broadest, narrowest | broader than, narrower than | meters
depth 1 700 1 | deepest, shallowest | deeper than, shallower than | meters
thickness 1 60 1 | thickest, thinnest | thicker than, thinner than | millimeters
speed 3 420 0 | fastest, slowest | faster than, slower than | knots
top_speed 20 420 0 | fastest, slowest | faster than, slower than | miles per hour
velocity 1 99 1 | fastest, slowest | faster than, slower than | meters per second
price 1 900 2 | most expensive, cheapest | costing more than, costing less than | dollars
cost 5 8000 0 | costliest, cheapest | costing more than, costing less than | euros | +
unit_cost 1 400 2 | most expensive, cheapest | costing more than, costing less than |
fare 1 90 2 | most expensive, cheapest | costing more than, costing less than | pounds | +
rent 200 6000 0 | most expensive, cheapest | costing more than, costing less than | francs | +
value 100 90000 0 | most valuable, least valuable | worth more than, worth less than | crowns | +
worth 100 90000 0 | most valuable, least valuable | worth more than, worth less than | dollars | +
salary 900 9500 0 | best-paid, worst-paid | earning more than, earning less than | euros | +
wage 8 80 2 | best-paid, worst-paid | earning more than, earning less than | an hour
pay 800 9000 0 | best-paid, worst-paid | earning more than, earning less than | | +
income 900 90000 0 | richest, poorest | earning more than, earning less than | | +
wealth 1000 900000 0 | richest, poorest | richer than, poorer than |
population 100 900000 0 | most populous, least populous | with more inhabitants than, with fewer inhabitants than | | +
temperature -30 45 1 | hottest, coldest | hotter than, colder than | degrees
warmth 1 40 1 | warmest, coolest | warmer than, cooler than | degrees
loudness 10 130 0 | loudest, quietest | louder than, quieter than | decibels
noise 10 130 0 | noisiest, quietest | louder than, quieter than | decibels
brightness 10 900 0 | brightest, dimmest | brighter than, dimmer than | lumens
strength 1 100 0 | strongest, weakest | stronger than, weaker than |
power 5 900 0 | most powerful, least powerful | stronger than, weaker than | watts
hardness 1 10 1 | hardest, softest | harder than, softer than |
area 2 4000 1 | largest, smallest | larger than, smaller than | hectares | +
floor_area 20 4000 0 | largest, smallest | larger than, smaller than | square meters | +
size 1 500 0 | biggest, smallest | bigger than, smaller than |
volume 1 900 1 | largest, smallest | larger than, smaller than | liters | +
capacity 10 9000 0 | roomiest, smallest | holding more than, holding fewer than | people | +
steepness 1 60 0 | steepest, flattest | steeper than, flatter than | degrees
popularity 1 100 0 | most popular, least popular | more popular than, less popular than | points
difficulty 1 20 0 | hardest, easiest | harder than, easier than |
complexity 1 50 0 | most complex, simplest | more complex than, simpler than |
rating 1 10 1 | best-rated, worst-rated | rated above, rated below |
score 0 100 0 | top-scoring, lowest-scoring | scoring above, scoring below | points
priority 1 9 0 | most urgent, least urgent | more urgent than, less urgent than |
urgency 1 10 0 | most urgent, least urgent | more urgent than, less urgent than |
purity 10 100 1 | purest, least pure | purer than, less pure than | percent
acidity 1 14 1 | most acidic, least acidic | more acidic than, less acidic than |
sweetness 1 100 0 | sweetest, least sweet | sweeter than, less sweet than |
spiciness 1 100 0 | spiciest, mildest | spicier than, milder than |
sharpness 1 100 0 | sharpest, bluntest | sharper than, blunter than |
rarity 1 100 0 | rarest, most common | rarer than, more common than |
reliability 1 100 0 | most reliable, least reliable | more reliable than, less reliable than | percent
efficiency 1 100 1 | most efficient, least efficient | more efficient than, less efficient than | percent
accuracy 30 100 1 | most accurate, least accurate | more accurate than, less accurate than | percent
durability 1 100 0 | most durable, least durable | more durable than, less durable than |
toxicity 0 100 1 | most toxic, least toxic | more toxic than, less toxic than |
fame 1 100 0 | most famous, least famous | more famous than, less famous than |
courage 1 100 0 | bravest, least brave | braver than, less brave than |
wisdom 1 100 0 | wisest, least wise | wiser than, less wise than |
attendance 10 90000 0 | best-attended, worst-attended | attended by more than, attended by fewer than | people | +
sales 10 90000 0 | best-selling, worst-selling | selling more than, selling fewer than | copies | +
profit 10 90000 0 | most profitable, least profitable | earning more than, earning less than | dollars | +
distance 1 900 1 | farthest, nearest | farther than, closer than | kilometers | +
crew 1 300 0 | best-manned, worst-manned | with more than, with fewer than | sailors | +
pages 8 1400 0 | longest, shortest | with more than, with fewer than | pages | +
seats 2 80000 0 | largest, smallest | with more than, with fewer than | seats | +
rooms 1 400 0 | largest, smallest | with more than, with fewer than | rooms | +
members 2 5000 0 | largest, smallest | with more than, with fewer than | members | +
floors 1 120 0 | tallest, lowest | with more than, with fewer than | floors | +
visitors 10 90000 0 | most visited, least visited | with more than, with fewer than | visitors | +
votes 1 50000 0 | most voted, least voted | with more than, with fewer than | votes | +
wins 0 60 0 | most victorious, least victorious | with more than, with fewer than | wins | +
goals 0 60 0 | most prolific, least prolific | with more than, with fewer than | goals | +
calories 5 1200 0 | richest, lightest | with more than, with fewer than | calories | +
moisture 0 100 1 | wettest, driest | wetter than, drier than | percent
rainfall 0 900 0 | wettest, driest | wetter than, drier than | millimeters | +
experience 0 45 0 | most experienced, least experienced | with more than, with less than | years of experience`;

/** Attributes whose values are single words. */
export const ATTRIBUTES = `
accent access affiliation alignment allegiance ambience appearance approach architecture archetype armor army aroma
arrangement attitude aura background band bark bearing beat behavior belief binding
biome blend blood_group body border branch brand breed build bundle cadre calling carrier caste
category cause chamber channel character chassis circle citizenship clan clarity class classification clearance climate
closure coating code_group cohort coloring color complexion component composition condition config confession connector
construction content context continent contour country course cover crest crop cuisine culture currency custom cut decade
decoration default_mode degree denomination department design destination dialect diet direction
discipline disposition dimension division doctrine domain dosage dress dynasty edition element emblem encoding
endorsement engine environment epoch era ethnicity examiner_code expertise exposure expression fabric faction faculty faith
family fashion fate favorite feature feel fermentation fiber finish flag flavor fold force form format
formation formula frame framework framing fragrance fuel function gauge_class gender genre gem_cut
glaze grade grain group guise habitat handle harvest_type hemisphere heritage hierarchy hobby homeland house hue
identity ideology idiom impression industry ink input instrument intent interface interest
kind kingdom label landscape language layout league legal_form level license lifestyle lineage line lining
location lock look lot_class maker mandate manner manufacturer marital_status market mark material measure
mechanism method metal meter_class milieu mode model mood mount motif movement nationality nature niche
nomenclature notation objective occasion occupation office offense operating_mode opinion order_type orientation origin
ornament outcome outlook packaging palette party patron pattern payment_method perception period personality
perspective phase philosophy pigment placement platform plumage polarity policy port_side pose position posture
preference preparation presentation process profession profile program pronunciation property provenance province publisher
purpose quarter race_class rank_title rationale reaction realm reason region register regime relation
religion remedy repertoire reputation residence resolution response restriction result rhythm role room_type rule_set
scale scent school scope script season seat_class sect section sector segment setting shade shape side skin
situation slant soil solvent source specialty species specimen sphere sponsor stage stance standard standing state
status strain strategy stream structure style subject substance suit surface system taste team technique
temperament temper tendency tenure terrain territory texture theme theory tier timbre time_zone tone topic topology track
tradition trait transmission treatment trend tribe trigger trim trophy_class tuning twist type typology upholstery usage
utility variant variety vendor_group venue verdict vessel_class view viewpoint vintage vocation voice weave wing
workflow worldview wrapping zone_class`;

/** Attributes with their usual values, as `name: values`. */
export const KNOWN_ATTRIBUTES = `
color: red blue green yellow black white brown grey orange purple pink turquoise beige maroon ivory
shade: crimson azure scarlet indigo teal amber lilac ochre khaki coral
status: active inactive pending closed open archived suspended draft
state: new running done failed paused cancelled waiting
condition: mint good fair poor broken restored
size: small medium large tiny huge
level: beginner intermediate advanced expert
grade: A B C D E F
tier: bronze silver gold platinum
rank: junior senior principal chief
material: oak steel glass wool brass marble leather cotton bamboo granite copper clay
metal: iron copper tin zinc silver nickel lead cobalt
fabric: linen silk denim velvet tweed satin flannel
season: spring summer autumn winter
weather: sunny rainy cloudy foggy windy snowy
direction: north south east west
shape: round square oval hexagonal triangular conical
mood: calm tense cheerful gloomy hopeful angry
language: English French Spanish Swahili Hindi Arabic Mandarin Turkish Finnish Korean Quechua
nationality: Dutch Kenyan Chilean Korean Polish Greek Moroccan Peruvian Danish Thai Canadian
continent: Africa Asia Europe Oceania
currency: euro dollar yen krona rupee peso franc
gender: female male
priority: low normal high critical
severity: minor moderate serious fatal
risk: low medium high
access: public private restricted secret
payment_method: cash card transfer cheque voucher
fuel: diesel petrol electric hybrid hydrogen
flavor: vanilla lemon mint cherry ginger caramel hazelnut
taste: sweet sour bitter salty savory
texture: smooth rough grainy silky waxy
habitat: forest desert reef tundra savanna wetland
diet: herbivore carnivore omnivore
climate: tropical arid temperate polar alpine
soil: clay sand loam peat chalk
era: ancient medieval modern baroque victorian
style: classic modern rustic minimal gothic cubist
genre: drama comedy thriller western horror fantasy mystery romance
format: hardcover paperback digital audio vinyl
medium: oil watercolor charcoal ink acrylic pastel
cuisine: Thai Lebanese Mexican Japanese Ethiopian Italian
instrument: violin cello oboe trumpet harp drum
tempo: slow moderate fast
voice: soprano alto tenor bass
outcome: win loss draw
result: passed failed postponed
verdict: guilty innocent mistrial
phase: planning design testing launch
shift: morning afternoon evening night
weekday: Monday Tuesday Wednesday Thursday Friday Saturday Sunday
month: January February March April May June July August September October November December
quarter: Q1 Q2 Q3 Q4
blood_group: A B AB O
planet: Mercury Venus Mars Jupiter Saturn
element: fire water earth air
gem: ruby opal jade topaz garnet onyx
wood: pine oak walnut cedar teak ash
channel: web phone email store
platform: desktop mobile console tablet
license: free trial commercial
source: survey archive interview sensor
visibility: clear hazy poor
plan: basic plus pro team
transmission: manual automatic
side: left right
answer: yes no maybe
code: X1 X2 Y1 Y2 Z9`;

/** Events that happen on a day: the date's noun and the participle. */
export const OCCASIONS = `
acceptance:accepted acquisition:acquired activation:activated admission:admitted adoption:adopted announcement:announced
appointment:appointed approval:approved archival:archived arrest:arrested assembly:assembled
assignment:assigned auction:auctioned award:awarded ban:banned birth:born booking:booked build:built
burial:buried cancellation:cancelled capture:captured carving:carved certification:certified christening:christened
cleaning:cleaned closing:closed collection:collected commission:commissioned completion:completed composition:composed
confirmation:confirmed construction:constructed contract:contracted conversion:converted copyright:copyrighted
coronation:crowned creation:created dedication:dedicated delivery:delivered demolition:demolished
deployment:deployed design:designed discharge:discharged discovery:discovered dispatch:dispatched donation:donated
draft:drafted drawing:drawn edit:edited election:elected enrollment:enrolled erection:erected evaluation:evaluated
examination:examined excavation:excavated exhibition:exhibited expansion:expanded export:exported filing:filed
filming:filmed firing:fired forging:forged foundation:founded framing:framed funding:funded graduation:graduated
grading:graded grant:granted harvest:harvested hire:hired import:imported inauguration:inaugurated incorporation:incorporated
inspection:inspected installation:installed invention:invented invitation:invited issue:issued launch:launched
lease:leased licensing:licensed maintenance:serviced making:made mapping:mapped measurement:measured
merger:merged minting:minted naming:named nomination:nominated opening:opened order:ordered overhaul:overhauled
painting:painted patent:patented payment:paid performance:performed planting:planted posting:posted premiere:premiered
printing:printed production:produced promotion:promoted publication:published purchase:purchased ratification:ratified
receipt:received recording:recorded recovery:recovered recruitment:recruited registration:registered rejection:rejected
release:released removal:removed renewal:renewed renovation:renovated repair:repaired replacement:replaced
request:requested rescue:rescued reservation:reserved restoration:restored retirement:retired
review:reviewed revision:revised sale:sold sampling:sampled scan:scanned screening:screened seizure:seized
shipping:shipped sighting:sighted signing:signed storage:stored submission:submitted survey:surveyed suspension:suspended
test:tested training:trained transfer:transferred translation:translated transport:transported update:updated
upload:uploaded vaccination:vaccinated valuation:valued verification:verified visit:visited voting:voted
weighing:weighed writing:written`;

/** Adjectives for names and titles. */
export const ADJECTIVES = `
able abrupt absent absolute abstract absurd abundant academic acidic acoustic active actual acute adept adequate aerial
afraid aged agile airy alert alien alive aloof alpine amateur amazing amber ample amusing ancient angry animal annual
anxious apparent aquatic arctic arid ashen asleep atomic attentive austere automatic autumn average awake awful awkward
azure balanced bald bare baroque barren basic bashful beautiful beloved bent better big bitter bizarre black bland blank
blazing bleak blind blissful blond bloody blue blunt blurry bold bony boring bossy botanical bouncy boundless brass brave
brazen breezy brief bright brilliant brisk brittle broad broken bronze brown bubbly bulky bumpy burning busy calm candid
canned capable careful careless casual cautious celestial central ceramic certain charming chaste cheap cheerful chemical
chief chilly chubby circular civic civil clandestine classic clean clear clever cloudy clumsy coarse coastal cold colonial
colorful colossal comfy common compact complete complex composed concrete confident constant content convex cool copper
coral cordial corporate correct cosmic costly cozy crafty crazy creamy creative crimson crisp critical crooked crowded
crucial crude cruel crumbly crunchy cryptic crystal cubic cultural cunning curious curly current curved customary cute
daily damp dangerous dapper daring dark dashing dazzling dead deaf dear decent deep defiant delicate delicious delightful
dense dental dependent deserted desolate determined devoted digital diligent dim direct dirty discreet distant distinct
divine dizzy docile domestic dominant dormant double doubtful drab dramatic drastic dreamy drowsy dry dual dull durable
dusty dutiful dynamic eager early earnest earthy eastern easy eccentric ecological edible elaborate elastic electric
elegant elementary eligible elite eloquent elusive emerald eminent empty enchanted endless enormous entire equal essential
eternal ethical even evergreen evil exact excellent exotic expert explicit exquisite external extinct extra fabulous faint
fair faithful familiar famous fancy fast fatal favorable fearless federal feeble feral fertile festive fierce fiery final
fine firm first fiscal fit flaky flat flawless flexible floating floral fluent fluffy flying foamy foggy fond foolish
foreign forgotten formal former fortunate fragile fragrant frail frank free frequent fresh friendly frosty frozen frugal
fruitful full funny furious furry fuzzy gallant gaseous generic generous gentle genuine ghostly giant giddy gifted gilded
glad gleaming global gloomy glorious glossy golden good gothic graceful gracious gradual grand graphic grassy grateful
gray great greedy green grim gritty growing grumpy guilty hairy half handsome handy happy hardy harmless harsh hasty
haunted hazel hazy healthy hearty heavy helpful hidden high hoarse hollow holy homely honest honorable horizontal hostile
hot huge human humble humid hungry husky hybrid icy ideal identical idle illegal immense imperial impish important
impressive indigo indoor industrial infamous infinite informal initial inner innocent instant intact intense internal
intimate invisible iron ironic ivory jade jagged jaunty jealous joint jolly jovial joyful joyous jubilant juicy junior
keen kind knotty known lame large lasting late lavish lawful lazy lean leafy learned leather left legal legendary leisurely
lethal level light likely limber limited linear liquid literary lively living local lofty lone lonely long loose loud
lovely low loyal lucid lucky luminous lunar lush luxurious lyrical mad magenta magic magnetic main majestic major male
mammoth manic manual marble marine married marvelous massive mature maximal meager mean measured mechanical medical
medieval mellow melodic mental merry mighty mild military milky minimal minor minty misty mobile modern modest modular
moist molten monthly moody moral mossy motionless muddy muffled multiple mundane murky musical mute mutual mysterious
mystic naive naked narrow nasty native natural nautical naval neat needy nervous neutral nimble noble nocturnal noisy
nomadic normal northern nostalgic notable novel nuclear numb numeric obedient oblong obscure obvious occasional oceanic
odd offbeat official old olive opal open optical optimal oral orange orbital ordinary organic ornate orthodox outer
outgoing oval overdue pale parallel partial passive past pastoral patient peaceful peculiar perfect periodic perky permanent
perpetual personal petite petty physical pink pious placid plain planetary plastic playful pleasant plump plural poetic
pointed polar polished polite political poor popular portable posh positive potent powerful practical precious precise
premium present pretty previous prime primitive private prompt proper proud prudent public pungent pure purple puzzled
quaint quick quiet quirky radiant radical rainy random rapid rare rational raw ready real rear rebel recent reckless red
reduced refined regal regional regular related reliable reluctant remote repeated resolute restless retro reverse rich
right rigid ripe rising robust rocky romantic rosy rotten rough round rowdy royal rude rugged rural rustic rusty sacred
sad safe salty sandy sane sapphire scarce scarlet scattered scenic scented scholarly scientific seasonal secondary secret
secure selfish senior sensible separate serene serious severe shabby shady shaggy shallow sharp shattered shiny short shy
sick silent silky silly silver similar simple sincere single sinister skilled sleek sleepy slender slick slim slippery slow
sly small smart smoky smooth snowy snug sober social soft solar sole solemn solid somber sonic sour southern spacious spare
sparkling special specific speedy spicy spiral splendid spontaneous sporty spotless stable stale standard stark static
steady steep stellar sterile stern sticky stiff still stormy stout straight strange strategic strict strong stubborn
sturdy stylish subtle sudden sulky sunken sunny super superb supreme sure sweet swift symbolic tactful talented tall tame
tan tangled tasty teal tedious tender tense tepid terse thankful thick thin thirsty thorny thoughtful thrifty tidal tidy
tight timely timid tiny tired toasty tough toxic tragic tranquil transparent tribal tricky triple tropical true trusty
turbulent turquoise twin typical ugly ultimate unique united universal unknown unruly untamed upbeat upper upright urban
urgent useful usual vacant vague vain valiant valid valuable vast velvet verbal verdant vertical viable vibrant victorious
vigilant vintage violet virtual visible visual vital vivid vocal volatile wandering warm wary wasteful watery wavy weak
wealthy weary weekly weird western wet whimsical white whole wicked wide wild willing windy winged winter wise witty
wonderful wooden woolly worldly worthy wounded yellow young youthful zany zealous`;
